// volcano_standin plays Volcano's job controller on a test bench.
//
// It is: a small controller of our own over the published API types of Volcano (volcano.sh/apis), which takes
// Commands, runs the phases of a batch.volcano.sh/v1alpha1 Job, applies lifecycle policies (also of tasks, exit codes
// and partitions), spends retries and makes pods as the real one was seen and read to do.
//
// It is not: Volcano. There is no scheduler of its own (kube-scheduler answers to the profile "volcano" and is given
// gangs), no queues, no capacity, no preemption, no job plugins, no policy time-outs, no dependsOn, no volumes, no
// admission webhooks, no HyperNode controller. A test that passes here shows that what was sent is what Volcano's
// types accept and that its state machine was coped with; it does not show that a real Volcano was driven.
//
// Ways of the real one that are kept on purpose, because programs trip over them:
//   - a Command is deleted first and carried out afterwards, so that one can be taken and lost (--die-after-command);
//   - a Command whose target has another apiVersion or kind is never looked at: it lies there for ever;
//   - status.retryCount and status.version are absent until the first restart;
//   - status.version runs on by itself in phase Failed;
//   - status.conditions holds one entry a phase, the newest; it is no history;
//   - in Restarting all pods but those that will not end are made again; the phase waits for the last one;
//   - a job in Failed, Completed or Terminated swallows every Command without effect.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	batch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	volcano "volcano.sh/apis/pkg/client/clientset/versioned"
)

// controller is everything that a pass over a job needs.
type controller struct {
	kube     kubernetes.Interface
	volcano  volcano.Interface
	recorder record.EventRecorder
	inbox    *inbox
	options  options
}

type options struct {
	kubeconfig      string
	domainLabel     string // node label that stands for a HyperNode of tier 1
	dieAfterCommand bool
	failedPace      time.Duration // how fast status.version runs on in Failed
}

func parseOptions() (o options) {
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "credentials and address of the API server")
	flag.StringVar(&o.domainLabel, "domain-label", "nvidia.com/gpu.clique", "node label whose values are the tier 1 domains")
	flag.BoolVar(&o.dieAfterCommand, "die-after-command", false, "end the process between taking a Command and acting on it")
	flag.DurationVar(&o.failedPace, "failed-pace", 250*time.Millisecond, "time between two writes of a failed job's status")
	flag.Parse()
	return o
}

func connect(o options) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err == nil {
		config.QPS, config.Burst = 500, 1000
		config.UserAgent = "volcano-standin"
	}
	return config, err
}

func newController(config *rest.Config, o options) *controller {
	c := &controller{
		kube:    kubernetes.NewForConfigOrDie(config),
		volcano: volcano.NewForConfigOrDie(config),
		inbox:   newInbox(),
		options: o,
	}
	if err := batch.AddToScheme(scheme.Scheme); err != nil {
		log.Fatal(err)
	}
	sink := record.NewBroadcaster()
	sink.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.kube.CoreV1().Events("")})
	c.recorder = sink.NewRecorder(scheme.Scheme, core.EventSource{Component: "volcano-standin"})
	return c
}

func main() {
	log.SetOutput(os.Stdout)
	log.SetFlags(log.Ltime | log.Lmicroseconds | log.LUTC)
	o := parseOptions()
	config, err := connect(o)
	if err != nil {
		log.Fatal(err)
	}
	c := newController(config, o)
	c.watch(context.Background())
	log.Print("ready")
	for {
		key := c.inbox.next()
		if err := c.pass(context.Background(), key); err != nil {
			log.Printf("%s: %v", key, err)
			c.inbox.again(key)
		} else {
			c.inbox.done(key)
		}
	}
}
