/* Any bytes as a policy file: it is read or refused with findings, and what is read can be matched.
 */
#include "controller/config/yaml.h"
#include "remediation/policy.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void match_everything(struct policy *take_policy)
{
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    policy_set_add(set, take_policy);
    for (int kind = 0; kind < VERDICT_KIND_COUNT; kind++)
        for (int scope = 0; scope < SCOPE_COUNT; scope++) {
            struct policy_case item = {.kind = (enum verdict_kind)kind,
                                       .scope = (enum scope)scope,
                                       .slowdown = 1.2,
                                       .confidence = 0.999,
                                       .evict = true,
                                       .repeats = 1,
                                       .job = "a/b",
                                       .job_phase = "eval"};
            struct policy_choice choice = policy_choose(set, &item);
            assert(choice.policy == NULL || choice.plan != NULL);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct findings findings = {0};
    struct yaml_document document = {0};
    struct policy *policy = NULL;
    AUTO_TEXT out = {0};
    yaml_parse((struct view){(const char *)data, size}, &document, &findings);
    if (findings.errors == 0) {
        enum status status = policy_parse(document.root, &findings, &policy);
        assert((status == OK) == (policy != NULL));
        assert((status == OK) == (findings.errors == 0));
    }
    findings_print(&findings, "fuzz", &out);
    if (policy != NULL)
        match_everything(policy);
    findings_done(&findings);
    yaml_done(&document);
    return 0;
}
