/* Shared by the actuators. */
#include "remediation/actuators/action_call.h"

#include "controller/sys/clock.h"

static const int64_t ALLOWED_NS_DEFAULT = INT64_C(300000000000);
static const int64_t ALLOWED_NS_LIMIT = INT64_C(2592000000000000);
static const int64_t LEAST_WAIT_NS = INT64_C(20000000);

int64_t action_time_allowed_ns(const struct action *action)
{
    AUTO(json_free) struct json *params = NULL;
    if (action->params_json != NULL)
        ignore_status(
            json_parse(view_of(action->params_json), &params, NULL)); /* ours; the default serves */
    int64_t allowed_ns = json_get_int(params, "timeout_ns", 0);
    return allowed_ns > 0 && allowed_ns < ALLOWED_NS_LIMIT ? allowed_ns : ALLOWED_NS_DEFAULT;
}

void action_wait(struct loop_timer *timer, int64_t wait_ns)
{
    int64_t real_ns = (int64_t)((double)wait_ns / clock_scale());
    loop_timer_set(timer, real_ns > LEAST_WAIT_NS ? real_ns : LEAST_WAIT_NS);
}

static void put_names(struct json_writer *writer, const char *key, const char *const *names,
                      size_t count)
{
    json_add_key(writer, key);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        json_add_string(writer, names[i]);
    json_close(writer);
}

void action_put(const struct action *action, struct json_writer *writer)
{
    json_put_string(writer, "verb", verb_name(action->verb));
    json_put_string(writer, "incident", action->incident_ref);
    json_put_string(writer, "job", action->job);
    put_names(writer, "nodes", action->nodes, action->node_count);
    put_names(writer, "spares", action->spares, action->spare_count);
    json_put_string(writer, "reason", action->reason);
}
