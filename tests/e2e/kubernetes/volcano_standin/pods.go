package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	scheduling "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// podsOf lists from the server and not from a cache: a pod that was made a moment ago is in it.
func (c *controller) podsOf(ctx context.Context, job *batch.Job) ([]*core.Pod, error) {
	selector := labels.Set{batch.JobNameKey: job.Name}.String()
	list, err := c.kube.CoreV1().Pods(job.Namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	var pods []*core.Pod
	for i := range list.Items {
		if owner := meta.GetControllerOf(&list.Items[i]); owner != nil && owner.UID == job.UID {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

func isFinished(pod *core.Pod) bool {
	return pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed
}

func versionOf(pod *core.Pod) int32 {
	version, _ := strconv.ParseInt(pod.Annotations[batch.JobVersion], 10, 32)
	return int32(version)
}

func exitCodeOf(pod *core.Pod) int32 {
	for _, container := range pod.Status.ContainerStatuses {
		if container.State.Terminated != nil && container.State.Terminated.ExitCode != 0 {
			return container.State.Terminated.ExitCode
		}
	}
	return 0
}

func replicas(job *batch.Job) (sum int32) {
	for _, task := range job.Spec.Tasks {
		sum += task.Replicas
	}
	return sum
}

// minAvailable is all pods where the job does not say; the real one's webhook writes that into the job.
func minAvailable(job *batch.Job) int32 {
	if job.Spec.MinAvailable > 0 {
		return job.Spec.MinAvailable
	}
	return replicas(job)
}

// deletePods asks politely, with the grace period of each pod, and notes in the view who is going. The notice of each
// deletion is taken out of circulation: it is our doing and asks for nothing.
func (c *controller) deletePods(ctx context.Context, v *view, chosen func(*core.Pod) bool) error {
	now := meta.Now()
	for _, pod := range v.pods {
		if pod.DeletionTimestamp != nil || !chosen(pod) {
			continue
		}
		uid := pod.UID
		c.inbox.forgive(uid)
		err := c.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		pod.DeletionTimestamp = &now
	}
	count(&v.job.Status, v.pods)
	return nil
}

// makePods makes the pods whose names are free, in gangs.
func (c *controller) makePods(ctx context.Context, v *view) error {
	taken := map[string]bool{}
	for _, pod := range v.pods {
		taken[pod.Name] = true
	}
	if err := c.makeGroup(ctx, v.job); err != nil {
		return err
	}
	for i := range v.job.Spec.Tasks {
		task := &v.job.Spec.Tasks[i]
		for index := range task.Replicas {
			pod := newPod(v.job, task, index)
			if taken[pod.Name] {
				continue
			}
			gang, err := c.makeGang(ctx, v, task, pod)
			if err != nil {
				return err
			}
			pod.Spec.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: &gang}
			made, err := c.kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, meta.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				continue // a pod that is just going; its end brings the next pass
			}
			if err != nil {
				return err
			}
			v.pods = append(v.pods, made)
		}
	}
	return nil
}

func newPod(job *batch.Job, task *batch.TaskSpec, index int32) *core.Pod {
	template := task.Template.DeepCopy()
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name:            fmt.Sprintf("%s-%s-%d", job.Name, task.Name, index),
			Namespace:       job.Namespace,
			OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(job, batch.SchemeGroupVersion.WithKind("Job"))},
			Labels:          map[string]string{},
			Annotations:     map[string]string{},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Annotations, template.Annotations)
	both := map[string]string{
		batch.JobNameKey:   job.Name,
		batch.TaskSpecKey:  task.Name,
		batch.TaskIndex:    strconv.Itoa(int(index)),
		batch.QueueNameKey: job.Spec.Queue,
	}
	maps.Copy(pod.Labels, both)
	maps.Copy(pod.Annotations, both)
	pod.Labels[batch.JobNamespaceKey] = job.Namespace
	if policy := task.PartitionPolicy; policy != nil && policy.PartitionSize > 0 {
		pod.Labels[batch.TaskPartitionID] = strconv.Itoa(int(index / policy.PartitionSize))
	}
	pod.Annotations[batch.JobVersion] = strconv.Itoa(int(job.Status.Version))
	pod.Annotations[batch.JobRetryCountKey] = strconv.Itoa(int(job.Status.RetryCount))
	pod.Annotations[batch.PodTemplateKey] = job.Name + "-" + task.Name
	pod.Annotations[scheduling.KubeGroupNameAnnotationKey] = groupName(job)
	for _, name := range []string{job.Spec.SchedulerName, "volcano"} {
		if pod.Spec.SchedulerName == "" {
			pod.Spec.SchedulerName = name
		}
	}
	return pod
}

// count fills the status's numbers of pods.
func count(status *batch.JobStatus, pods []*core.Pod) {
	status.Pending, status.Running, status.Succeeded, status.Failed, status.Terminating, status.Unknown = 0, 0, 0, 0, 0, 0
	status.TaskStatusCount = map[string]batch.TaskState{}
	byPhase := map[core.PodPhase]*int32{
		core.PodPending: &status.Pending, core.PodRunning: &status.Running,
		core.PodSucceeded: &status.Succeeded, core.PodFailed: &status.Failed,
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			status.Terminating++
			continue
		}
		phase := pod.Status.Phase
		if phase == "" {
			phase = core.PodPending
		}
		number := byPhase[phase]
		if number == nil {
			number = &status.Unknown
		}
		*number++
		task := pod.Annotations[batch.TaskSpecKey]
		if status.TaskStatusCount[task].Phase == nil {
			status.TaskStatusCount[task] = batch.TaskState{Phase: map[core.PodPhase]int32{}}
		}
		status.TaskStatusCount[task].Phase[phase]++
	}
}
