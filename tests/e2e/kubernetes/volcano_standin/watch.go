package main

import (
	"context"
	"log"
	"os"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"
)

// watch turns what the API server tells into notices; it returns when all lists are in.
func (c *controller) watch(ctx context.Context) {
	pods := informers.NewSharedInformerFactory(c.kube, 0)
	others := volcanoinformers.NewSharedInformerFactory(c.volcano, 0)
	add(pods.Core().V1().Pods().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.podChanged(nil, o.(*core.Pod)) },
		UpdateFunc: func(old, o any) { c.podChanged(old.(*core.Pod), o.(*core.Pod)) },
		DeleteFunc: func(o any) { c.podGone(o) },
	})
	add(others.Batch().V1alpha1().Jobs().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { c.inbox.look(keyOf(o.(*batch.Job))) },
		UpdateFunc: func(old, o any) { c.jobChanged(old.(*batch.Job), o.(*batch.Job)) },
	})
	add(others.Bus().V1alpha1().Commands().Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.takeCommand(ctx, o.(*bus.Command)) },
	})
	pods.Start(ctx.Done())
	others.Start(ctx.Done())
	pods.WaitForCacheSync(ctx.Done())
	others.WaitForCacheSync(ctx.Done())
}

func add(informer cache.SharedIndexInformer, handler cache.ResourceEventHandlerFuncs) {
	if _, err := informer.AddEventHandler(handler); err != nil {
		log.Fatal(err)
	}
}

func keyOf(job *batch.Job) jobKey { return jobKey{job.Namespace, job.Name} }

// ownerOf is the key of the job that made the pod, if one did.
func ownerOf(pod *core.Pod) (jobKey, bool) {
	owner := meta.GetControllerOf(pod)
	if owner == nil || owner.APIVersion != batch.SchemeGroupVersion.String() {
		return jobKey{}, false
	}
	return jobKey{pod.Namespace, owner.Name}, true
}

func (c *controller) jobChanged(old, job *batch.Job) {
	if old.Generation != job.Generation || old.Status.State.Phase != job.Status.State.Phase {
		c.inbox.look(keyOf(job))
	}
}

func (c *controller) podGone(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}
	pod := o.(*core.Pod)
	key, ours := ownerOf(pod)
	if !ours {
		return
	}
	if pod.DeletionTimestamp == nil { // removed at once: this is the first that is heard of it
		c.inbox.put(key, noticeOf(pod, bus.PodEvictedEvent))
	}
	c.inbox.look(key)
}

func (c *controller) podChanged(old, pod *core.Pod) {
	key, ours := ownerOf(pod)
	if !ours {
		return
	}
	if event := eventOf(old, pod); event != "" {
		c.inbox.put(key, noticeOf(pod, event))
	}
	c.inbox.look(key)
}

// eventOf is what policies may be written for; empty when the change is none of that.
func eventOf(old, pod *core.Pod) bus.Event {
	switch {
	case pod.DeletionTimestamp != nil:
		if old == nil || old.DeletionTimestamp == nil {
			return bus.PodEvictedEvent
		}
	case old == nil || old.Status.Phase == pod.Status.Phase:
	case pod.Status.Phase == core.PodFailed:
		return bus.PodFailedEvent
	case pod.Status.Phase == core.PodRunning:
		return bus.PodRunningEvent
	case pod.Status.Phase == core.PodSucceeded:
		return bus.TaskCompletedEvent // whether all pods of the task ended is seen when the policy is looked up
	}
	return ""
}

// takeCommand removes the Command and only then queues what it asks for: at most once, and lost when the process
// ends in between.
func (c *controller) takeCommand(ctx context.Context, command *bus.Command) {
	target := command.TargetObject
	if target == nil || target.APIVersion != batch.SchemeGroupVersion.String() || target.Kind != "Job" {
		log.Printf("command %s/%s: not for a job: left alone", command.Namespace, command.Name)
		return
	}
	err := c.volcano.BusV1alpha1().Commands(command.Namespace).Delete(ctx, command.Name, meta.DeleteOptions{})
	if err != nil {
		log.Printf("command %s/%s: %v", command.Namespace, command.Name, err)
		return
	}
	log.Printf("command %s/%s: %s taken", command.Namespace, command.Name, command.Action)
	if c.options.dieAfterCommand {
		os.Exit(3)
	}
	key := jobKey{command.Namespace, target.Name}
	c.inbox.put(key, notice{event: bus.CommandIssuedEvent, action: bus.Action(command.Action)})
}
