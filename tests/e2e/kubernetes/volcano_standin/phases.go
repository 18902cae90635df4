package main

import (
	"context"
	"log"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
)

// view is one pass's look at a job: it and its pods, both read from the API server, and what is to be written.
type view struct {
	job  *batch.Job
	pods []*core.Pod
	was  batch.JobStatus
}

// pass looks at a job and takes one step: an action that a notice asks for, or what its phase does by itself.
func (c *controller) pass(ctx context.Context, key jobKey) error {
	v, err := c.read(ctx, key)
	if v == nil || err != nil {
		return err
	}
	notices := c.inbox.take(key)
	for i, n := range notices {
		action := actionFor(v.job, n, v.pods)
		if action == bus.SyncJobAction || !c.isTaken(v.job.Status.State.Phase, action) {
			continue
		}
		log.Printf("%s: %s in %q after %s %s", key, action, v.job.Status.State.Phase, n.event, n.pod)
		c.recorder.Event(v.job, core.EventTypeNormal, string(batch.ExecuteAction), "carrying out "+string(action))
		if err := c.carryOut(ctx, v, action, n); err != nil {
			c.inbox.putBack(key, notices[i:])
			return err
		}
		c.inbox.putBack(key, notices[i+1:])
		c.inbox.look(key)
		return nil
	}
	return c.goOn(ctx, v)
}

func (c *controller) read(ctx context.Context, key jobKey) (*view, error) {
	job, err := c.volcano.BatchV1alpha1().Jobs(key.namespace).Get(ctx, key.name, meta.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && job.DeletionTimestamp != nil) {
		c.inbox.take(key)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pods, err := c.podsOf(ctx, job)
	if err != nil {
		return nil, err
	}
	return &view{job: job, pods: pods, was: *job.Status.DeepCopy()}, nil
}

// isTaken says whether a phase listens to an action. Nothing leads out of the last phases; a job that is on its way
// somewhere gets there first.
func (c *controller) isTaken(phase batch.JobPhase, action bus.Action) bool {
	switch phase {
	case "", batch.Pending, batch.Running:
		return action != bus.ResumeJobAction
	case batch.Aborted:
		return action == bus.ResumeJobAction
	case batch.Aborting:
		return action == bus.ResumeJobAction
	}
	return false
}

// carryOut deletes pods, then writes the phase: a restart of any kind costs one retry.
func (c *controller) carryOut(ctx context.Context, v *view, action bus.Action, n notice) error {
	status := &v.job.Status
	if target := targetOf(action, n); target != nil {
		if err := c.deletePods(ctx, v, target); err != nil {
			return err
		}
		status.State.Phase = batch.Restarting
		status.RetryCount++
		return c.write(ctx, v)
	}
	next, known := wholeJob[action]
	if !known {
		log.Printf("%s: %s is not known", keyOf(v.job), action)
		return nil
	}
	if next == batch.Restarting {
		status.RetryCount++
	}
	if err := c.killAll(ctx, v, next != batch.Restarting); err != nil {
		return err
	}
	status.State.Phase = next
	return c.write(ctx, v)
}

var wholeJob = map[bus.Action]batch.JobPhase{
	bus.RestartJobAction:   batch.Restarting,
	bus.ResumeJobAction:    batch.Restarting,
	bus.AbortJobAction:     batch.Aborting,
	bus.TerminateJobAction: batch.Terminating,
	bus.CompleteJobAction:  batch.Completing,
}

// killAll deletes the pods of this run of the job and its gangs, and begins a new version. Finished pods are kept
// for their logs when the job is not to go on, and on its last try.
func (c *controller) killAll(ctx context.Context, v *view, keepFinished bool) error {
	keepFinished = keepFinished || v.job.Status.RetryCount >= v.job.Spec.MaxRetry
	if err := c.deletePods(ctx, v, func(pod *core.Pod) bool { return !(keepFinished && isFinished(pod)) }); err != nil {
		return err
	}
	v.job.Status.Version++
	return c.deleteGroups(ctx, v.job)
}

// goOn is what a phase does without being asked.
func (c *controller) goOn(ctx context.Context, v *view) error {
	status := &v.job.Status
	switch status.State.Phase {
	case "":
		status.State.Phase = batch.Pending
		status.MinAvailable = minAvailable(v.job)
		return c.write(ctx, v)
	case batch.Pending, batch.Running:
		return c.keepRunning(ctx, v)
	case batch.Restarting:
		return c.keepRestarting(ctx, v)
	case batch.Aborting:
		return c.windDown(ctx, v, batch.Aborted)
	case batch.Terminating:
		return c.windDown(ctx, v, batch.Terminated)
	case batch.Completing:
		return c.windDown(ctx, v, batch.Completed)
	case batch.Failed:
		return c.keepFailing(ctx, v)
	}
	return nil
}

func (c *controller) keepRunning(ctx context.Context, v *view) error {
	if err := c.makePods(ctx, v); err != nil {
		return err
	}
	status := &v.job.Status
	count(status, v.pods)
	started := status.Running + status.Succeeded + status.Failed
	switch {
	case status.State.Phase == batch.Pending && started >= minAvailable(v.job):
		status.State.Phase = batch.Running
		c.markGroupRunning(ctx, v.job)
	case status.State.Phase == batch.Running && status.Succeeded+status.Failed == replicas(v.job):
		status.State.Phase = batch.Failed
		if status.Succeeded >= minAvailable(v.job) {
			status.State.Phase = batch.Completed
		}
	}
	return c.write(ctx, v)
}

// keepRestarting makes what can be made again and stays until the last pod of the earlier run has ended.
func (c *controller) keepRestarting(ctx context.Context, v *view) error {
	status := &v.job.Status
	if status.RetryCount >= v.job.Spec.MaxRetry {
		if err := c.killAll(ctx, v, true); err != nil {
			return err
		}
		status.State.Phase = batch.Failed
		return c.write(ctx, v)
	}
	if err := c.makePods(ctx, v); err != nil {
		return err
	}
	count(status, v.pods)
	if status.Terminating == 0 {
		status.State.Phase = batch.Pending
	}
	return c.write(ctx, v)
}

func (c *controller) windDown(ctx context.Context, v *view, end batch.JobPhase) error {
	count(&v.job.Status, v.pods)
	if v.job.Status.Terminating+v.job.Status.Pending+v.job.Status.Running == 0 {
		v.job.Status.State.Phase = end
	}
	return c.write(ctx, v)
}

// keepFailing: the real one kills again and again here, and counts each time.
func (c *controller) keepFailing(ctx context.Context, v *view) error {
	if err := c.deletePods(ctx, v, func(pod *core.Pod) bool { return !isFinished(pod) }); err != nil {
		return err
	}
	count(&v.job.Status, v.pods)
	v.job.Status.Version++
	if err := c.write(ctx, v); err != nil {
		return err
	}
	c.inbox.lookAfter(keyOf(v.job), c.options.failedPace)
	return nil
}
