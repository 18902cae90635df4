package main

import (
	"context"
	"log"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
)

// write puts the status where it has changed. A conflict is an error: the pass is done again from a new look.
func (c *controller) write(ctx context.Context, v *view) error {
	status := &v.job.Status
	if status.State.Phase != v.was.State.Phase {
		enter(status)
		log.Printf("%s: %q -> %q, retry %d, version %d", keyOf(v.job), v.was.State.Phase, status.State.Phase, status.RetryCount, status.Version)
	}
	if equality.Semantic.DeepEqual(*status, v.was) {
		return nil
	}
	_, err := c.volcano.BatchV1alpha1().Jobs(v.job.Namespace).UpdateStatus(ctx, v.job, meta.UpdateOptions{})
	return err
}

// enter notes the phase in the conditions, where the newest visit replaces earlier ones.
func enter(status *batch.JobStatus) {
	now := meta.Now()
	status.State.LastTransitionTime = now
	status.Conditions = slices.DeleteFunc(status.Conditions, func(condition batch.JobCondition) bool {
		return condition.Status == status.State.Phase
	})
	status.Conditions = append(status.Conditions, batch.JobCondition{Status: status.State.Phase, LastTransitionTime: &now})
}
