package main

import (
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
)

// jobKey names a job; a new job of the same name is another matter, which the pass finds out by reading it.
type jobKey struct{ namespace, name string }

func (k jobKey) String() string { return k.namespace + "/" + k.name }

// notice is one thing that happened to a job: a Command, or an event of one of its pods.
type notice struct {
	event     bus.Event
	action    bus.Action // set for a Command: it overrides the policies
	task      string
	partition string
	pod       string
	uid       types.UID
	exitCode  int32
	version   int32 // the job's version that made the pod
}

func noticeOf(pod *core.Pod, event bus.Event) notice {
	return notice{
		event:     event,
		task:      pod.Annotations[batch.TaskSpecKey],
		partition: pod.Labels[batch.TaskPartitionID],
		pod:       pod.Name,
		uid:       pod.UID,
		exitCode:  exitCodeOf(pod),
		version:   versionOf(pod),
	}
}

// inbox keeps the notices of each job in order and hands out jobs one at a time. Passes that nothing but a look at
// the world asks for are merged.
type inbox struct {
	queue   workqueue.TypedRateLimitingInterface[jobKey]
	mutex   sync.Mutex
	waiting map[jobKey][]notice
	ours    map[types.UID]bool // pods that were deleted by ourselves: their going is no news
}

func newInbox() *inbox {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[jobKey](20*time.Millisecond, 2*time.Second)
	return &inbox{queue: workqueue.NewTypedRateLimitingQueue(limiter), waiting: map[jobKey][]notice{}, ours: map[types.UID]bool{}}
}

func (b *inbox) put(key jobKey, n notice) {
	b.mutex.Lock()
	if !b.ours[n.uid] {
		b.waiting[key] = append(b.waiting[key], n)
	}
	b.mutex.Unlock()
	b.queue.Add(key)
}

// forgive makes whatever happens to a pod from here on no notice.
func (b *inbox) forgive(uid types.UID) {
	b.mutex.Lock()
	b.ours[uid] = true
	b.mutex.Unlock()
}

// look asks for a pass without a notice.
func (b *inbox) look(key jobKey) { b.queue.Add(key) }

func (b *inbox) lookAfter(key jobKey, pause time.Duration) { b.queue.AddAfter(key, pause) }

func (b *inbox) take(key jobKey) []notice {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	taken := b.waiting[key]
	delete(b.waiting, key)
	return taken
}

// putBack returns notices that were not used up, before those that came meanwhile.
func (b *inbox) putBack(key jobKey, rest []notice) {
	if len(rest) == 0 {
		return
	}
	b.mutex.Lock()
	b.waiting[key] = append(rest, b.waiting[key]...)
	b.mutex.Unlock()
	b.queue.Add(key)
}

func (b *inbox) next() jobKey {
	key, _ := b.queue.Get()
	return key
}

func (b *inbox) done(key jobKey) {
	b.queue.Forget(key)
	b.queue.Done(key)
}

func (b *inbox) again(key jobKey) {
	b.queue.AddRateLimited(key)
	b.queue.Done(key)
}
