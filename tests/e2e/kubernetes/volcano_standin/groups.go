package main

import (
	"context"
	"fmt"
	"strconv"

	core "k8s.io/api/core/v1"
	kubescheduling "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	scheduling "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// Two kinds of groups. Volcano's own PodGroup is there because users of its API read it. The scheduling of the gang is
// done by kube-scheduler over its own PodGroup, one for each set of pods that starts together.

const gangOf = "volcano-standin/job"

func groupName(job *batch.Job) string { return batch.PodgroupNamePrefix + string(job.UID) }

func objectMeta(job *batch.Job, name string) meta.ObjectMeta {
	return meta.ObjectMeta{
		Name: name, Namespace: job.Namespace, Labels: map[string]string{gangOf: string(job.UID)},
		OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(job, batch.SchemeGroupVersion.WithKind("Job"))},
	}
}

func (c *controller) makeGroup(ctx context.Context, job *batch.Job) error {
	groups := c.volcano.SchedulingV1beta1().PodGroups(job.Namespace)
	if _, err := groups.Get(ctx, groupName(job), meta.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	group := &scheduling.PodGroup{ObjectMeta: objectMeta(job, groupName(job)), Spec: scheduling.PodGroupSpec{
		MinMember: minAvailable(job), Queue: job.Spec.Queue, PriorityClassName: job.Spec.PriorityClassName}}
	made, err := groups.Create(ctx, group, meta.CreateOptions{})
	if err != nil {
		return err
	}
	made.Status.Phase = scheduling.PodGroupInqueue
	_, err = groups.UpdateStatus(ctx, made, meta.UpdateOptions{})
	return err
}

// markGroupRunning is for readers only: that it fails delays nothing.
func (c *controller) markGroupRunning(ctx context.Context, job *batch.Job) {
	groups := c.volcano.SchedulingV1beta1().PodGroups(job.Namespace)
	group, err := groups.Get(ctx, groupName(job), meta.GetOptions{})
	if err != nil {
		return
	}
	group.Status.Phase, group.Status.Running = scheduling.PodGroupRunning, job.Status.Running
	_, _ = groups.UpdateStatus(ctx, group, meta.UpdateOptions{})
}

func (c *controller) deleteGroups(ctx context.Context, job *batch.Job) error {
	err := c.volcano.SchedulingV1beta1().PodGroups(job.Namespace).Delete(ctx, groupName(job), meta.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return c.kube.SchedulingV1alpha2().PodGroups(job.Namespace).DeleteCollection(ctx, meta.DeleteOptions{},
		meta.ListOptions{LabelSelector: gangOf + "=" + string(job.UID)})
}

// gang is one set of pods that starts together: the job, or a partition of a task, in one of its runs. Pods that a
// restart of a part brings back form a gang of their own.
type gang struct {
	name     string
	minCount int32
	topology *batch.NetworkTopologySpec
}

// runName keeps the gangs of two jobs that bore one name apart.
func runName(job *batch.Job) string { return job.Name + "-" + string(job.UID)[:8] }

func gangFor(v *view, task *batch.TaskSpec, pod *core.Pod) gang {
	retry := strconv.Itoa(int(v.job.Status.RetryCount))
	if partition, ok := pod.Labels[batch.TaskPartitionID]; ok {
		topology := task.PartitionPolicy.NetworkTopology
		if topology == nil {
			topology = v.job.Spec.NetworkTopology
		}
		return gang{fmt.Sprintf("%s-%s-p%s-r%s", runName(v.job), task.Name, partition, retry), task.PartitionPolicy.PartitionSize, topology}
	}
	kept := int32(0)
	for _, other := range v.pods {
		if other.DeletionTimestamp == nil && other.Annotations[batch.JobRetryCountKey] != retry {
			kept++
		}
	}
	return gang{runName(v.job) + "-r" + retry, max(1, minAvailable(v.job)-kept), v.job.Spec.NetworkTopology}
}

// makeGang makes the pod's gang where it is not there yet and returns its name.
func (c *controller) makeGang(ctx context.Context, v *view, task *batch.TaskSpec, pod *core.Pod) (string, error) {
	g := gangFor(v, task, pod)
	gangs := c.kube.SchedulingV1alpha2().PodGroups(v.job.Namespace)
	if _, err := gangs.Get(ctx, g.name, meta.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
		return g.name, err
	}
	policy := kubescheduling.PodGroupSchedulingPolicy{Gang: &kubescheduling.GangSchedulingPolicy{MinCount: g.minCount}}
	constraints := c.constraintsOf(g.topology)
	workload := &kubescheduling.Workload{ObjectMeta: objectMeta(v.job, g.name), Spec: kubescheduling.WorkloadSpec{
		PodGroupTemplates: []kubescheduling.PodGroupTemplate{{Name: "all", SchedulingPolicy: policy, SchedulingConstraints: constraints}}}}
	_, err := c.kube.SchedulingV1alpha2().Workloads(v.job.Namespace).Create(ctx, workload, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return "", err
	}
	group := &kubescheduling.PodGroup{ObjectMeta: objectMeta(v.job, g.name), Spec: kubescheduling.PodGroupSpec{
		PodGroupTemplateRef: &kubescheduling.PodGroupTemplateReference{Workload: &kubescheduling.WorkloadPodGroupTemplateReference{
			WorkloadName: g.name, PodGroupTemplateName: "all"}},
		SchedulingPolicy: policy, SchedulingConstraints: constraints}}
	_, err = gangs.Create(ctx, group, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	return g.name, err
}

// constraintsOf: hard topology of tier 1 is one domain; wider tiers span the whole bench and constrain nothing.
func (c *controller) constraintsOf(topology *batch.NetworkTopologySpec) *kubescheduling.PodGroupSchedulingConstraints {
	if topology == nil || topology.Mode == batch.SoftNetworkTopologyMode || topology.HighestTierAllowed == nil || *topology.HighestTierAllowed != 1 {
		return nil
	}
	return &kubescheduling.PodGroupSchedulingConstraints{Topology: []kubescheduling.TopologyConstraint{{Key: c.options.domainLabel}}}
}
