/* A verdict's numbers in words that an on-call can check by hand. */
#include "detectors/engine_state.h"

#include <math.h>
#include <string.h>

static void add_where(struct text *out, const struct verdict *verdict)
{
    text_addf(out, "%s %s %s at step %lld", verdict_kind_name(verdict->kind),
              scope_name(verdict->scope), verdict->id, (long long)verdict->step);
    if (verdict->since_step >= 0 && verdict->since_step < verdict->step)
        text_addf(out, ", since about step %lld", (long long)verdict->since_step);
    text_add(out, "\n");
}

static double find(const struct verdict *verdict, const char *name)
{
    for (size_t i = 0; i < verdict->evidence_count; i++)
        if (strcmp(verdict->evidence[i].name, name) == 0 && verdict->evidence[i].text == NULL)
            return verdict->evidence[i].value;
    return (double)NAN;
}

static void add_slow(const struct engine *engine, const struct verdict *verdict, struct text *out)
{
    static const struct {
        const char *name, *of;
    } SCORES[] = {
        {"compute_z", "its own compute against its tensor peers"},
        {"group_compute_z", "its compute against ranks with the same work"},
        {"replica_compute_z", "its replica's compute against other replicas"},
        {"outside_compute_z", "its time in neither compute nor all-reduce"},
        {"lateness_z", "how late it reaches the all-reduce"},
    };
    double sm = find(verdict, "sm_shift");

    for (size_t i = 0; i < sizeof SCORES / sizeof SCORES[0]; i++) {
        double z = find(verdict, SCORES[i].name);
        if (isfinite(z))
            text_addf(out, "  %s: %.1f spreads over %.0f peers; an alarm needs %.1f\n",
                      SCORES[i].of, z, find(verdict, "peers"), engine->z_alarm);
    }
    if (isfinite(find(verdict, "stall_nats")))
        text_addf(out, "  it stalls often: evidence %.1f nats; an alarm needs %.1f\n",
                  find(verdict, "stall_nats"), engine->nats_alarm);
    text_addf(out,
              "  it needs %.1f %% more time than its peers, in the last %.0f steps; noise of one "
              "step is %.2f %%\n",
              100 * (verdict->slowdown - 1), find(verdict, "window_steps"),
              100 * find(verdict, "noise"));
    if (isfinite(find(verdict, "usual_offset")))
        text_addf(out, "  that is against its own past, in which it was %.2f %% off the middle\n",
                  100 * find(verdict, "usual_offset"));
    text_addf(out, "  it waits %.1f ms less than usual in the all-reduce: the others wait for it\n",
              -find(verdict, "allreduce_wait_ms"));
    if (isfinite(sm))
        text_addf(out, "  its SMs are %.1f %% %s than its peers' were: cause %s\n", 100 * fabs(sm),
                  sm >= 0 ? "busier" : "idler", cause_name(verdict->cause));
    if (isfinite(find(verdict, "clock_ratio")))
        text_addf(out, "  its clock is %.1f %% of the others', its power %.1f %%\n",
                  100 * find(verdict, "clock_ratio"), 100 * find(verdict, "power_ratio"));
    text_addf(out, "  without it a step would take %.1f %% less\n", 100 * verdict->gain);
    if (isfinite(find(verdict, "earlier_faults")))
        text_addf(out,
                  "  its GPU, tray or rack had %.0f faults before: that counts %.1f nats, at most "
                  "%.0f\n",
                  find(verdict, "earlier_faults"), find(verdict, "prior_nats"), HISTORY_NATS_MOST);
    text_addf(out, "  the chance of so much by itself is %.1e; confidence %.6g\n",
              1 - verdict->confidence, verdict->confidence);
}

static void add_all_evidence(const struct verdict *verdict, struct text *out)
{
    for (size_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        if (evidence->text != NULL)
            text_addf(out, "  %s: %s\n", evidence->name, evidence->text);
        else
            text_addf(out, "  %s: %.6g\n", evidence->name, evidence->value);
    }
}

void engine_explain(const struct engine *engine, const struct verdict *verdict, struct text *out)
{
    add_where(out, verdict);
    if (isfinite(find(verdict, "shift")))
        add_slow(engine, verdict, out);
    else
        add_all_evidence(verdict, out);
    if (verdict->node_count > 0)
        text_addf(out, "  replace %s: %s\n", verdict->evict ? "advised" : "not advised",
                  verdict->nodes[0]);
    if (verdict->victim_count > 0)
        text_addf(out, "  %zu other ranks stand because of it\n", verdict->victim_count);
}
