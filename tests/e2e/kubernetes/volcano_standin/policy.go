package main

import (
	"slices"

	core "k8s.io/api/core/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
)

// actionFor is what a notice asks for: a Command's own action, else that of the first policy that fits, those of the
// pod's task before those of the job. Events of pods that an earlier run of the job made ask for nothing.
func actionFor(job *batch.Job, n notice, pods []*core.Pod) bus.Action {
	if n.action != "" {
		return n.action
	}
	if n.version < job.Status.Version && n.event != bus.TaskCompletedEvent {
		return bus.SyncJobAction
	}
	policies := job.Spec.Policies
	if task := taskOf(job, n.task); task != nil {
		if n.event == bus.TaskCompletedEvent && !isCompleted(task, pods) {
			return bus.SyncJobAction
		}
		policies = slices.Concat(task.Policies, job.Spec.Policies)
	}
	for _, policy := range policies {
		if fits(policy, n) {
			return policy.Action
		}
	}
	return bus.SyncJobAction
}

func fits(policy batch.LifecyclePolicy, n notice) bool {
	if policy.ExitCode != nil {
		return n.event == bus.PodFailedEvent && n.exitCode != 0 && n.exitCode == *policy.ExitCode
	}
	return slices.ContainsFunc(append(policy.Events, policy.Event), func(event bus.Event) bool {
		return event == n.event || event == bus.AnyEvent
	})
}

func taskOf(job *batch.Job, name string) *batch.TaskSpec {
	for i := range job.Spec.Tasks {
		if job.Spec.Tasks[i].Name == name {
			return &job.Spec.Tasks[i]
		}
	}
	return nil
}

func isCompleted(task *batch.TaskSpec, pods []*core.Pod) bool {
	done := int32(0)
	for _, pod := range pods {
		if pod.Annotations[batch.TaskSpecKey] == task.Name && pod.Status.Phase == core.PodSucceeded {
			done++
		}
	}
	return done >= task.Replicas
}

// targetOf says which pods a restart of a part takes; nil for an action that is about the whole job.
func targetOf(action bus.Action, n notice) func(*core.Pod) bool {
	switch action {
	case bus.RestartTaskAction:
		return func(pod *core.Pod) bool { return pod.Annotations[batch.TaskSpecKey] == n.task }
	case bus.RestartPodAction:
		return func(pod *core.Pod) bool { return pod.Name == n.pod }
	case bus.RestartPartitionAction:
		return func(pod *core.Pod) bool {
			return pod.Annotations[batch.TaskSpecKey] == n.task && pod.Labels[batch.TaskPartitionID] == n.partition
		}
	}
	return nil
}
