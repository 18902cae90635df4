#include "controller/config/yaml.h"
#include "tests/harness/test.h"

#include <string.h>

static void parse(const char *text, struct yaml_document *document, struct findings *findings)
{
    *findings = (struct findings){0};
    yaml_parse(view_of(text), document, findings);
}

/* The one finding of a text that is refused has this rule at this place, and there is no tree. */
static void assert_refused(const char *text, const char *rule, int line, int column)
{
    struct yaml_document document;
    struct findings findings;
    parse(text, &document, &findings);
    CU_ASSERT_PTR_NULL(document.root);
    CU_ASSERT_EQUAL_FATAL(findings.count, 1);
    CU_ASSERT_STRING_EQUAL(findings.items[0].rule, rule);
    CU_ASSERT_EQUAL(findings.items[0].line, line);
    CU_ASSERT_EQUAL(findings.items[0].column, column);
    findings_done(&findings);
    yaml_done(&document);
}

TEST(every_value_knows_its_place_and_its_key)
{
    struct yaml_document document;
    struct findings findings;
    parse("mode: observe\nbudgets:\n  - {name: trays, trays: 8}\n  - name: 'racks'\n", &document,
          &findings);
    CU_ASSERT_EQUAL(findings.count, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document.root);
    const struct tree_node *mode = tree_get(document.root, "mode");
    CU_ASSERT_STRING_EQUAL(mode->scalar, "observe");
    CU_ASSERT_EQUAL(mode->line, 1);
    CU_ASSERT_EQUAL(mode->column, 7);
    const struct tree_node *budgets = tree_get(document.root, "budgets");
    CU_ASSERT_EQUAL(budgets->kind, TREE_SEQUENCE);
    CU_ASSERT_EQUAL(budgets->size, 2);
    const struct tree_node *trays = tree_get(budgets->first, "trays");
    CU_ASSERT_STRING_EQUAL(trays->scalar, "8");
    CU_ASSERT_EQUAL(trays->key_line, 3);
    CU_ASSERT_EQUAL(trays->key_column, 19);
    CU_ASSERT_FALSE(trays->quoted);
    CU_ASSERT(tree_get(budgets->first->next, "name")->quoted);
    yaml_done(&document);
}

TEST(a_key_that_stands_twice_is_a_finding_at_the_second_place)
{
    struct yaml_document document;
    struct findings findings;
    parse("a: 1\nb: 2\na: 3\nb: 4\n", &document, &findings);
    CU_ASSERT_EQUAL_FATAL(findings.count, 2);
    CU_ASSERT_STRING_EQUAL(findings.items[0].rule, "duplicate-key");
    CU_ASSERT_EQUAL(findings.items[0].line, 3);
    CU_ASSERT_EQUAL(findings.items[0].column, 1);
    CU_ASSERT_EQUAL(findings.items[1].line, 4);
    CU_ASSERT_PTR_NOT_NULL(document.root);
    findings_done(&findings);
    yaml_done(&document);
}

TEST(what_makes_one_text_mean_two_things_is_refused)
{
    assert_refused("a: &x 1\n", "anchor", 1, 4);
    assert_refused("a: *x\n", "alias", 1, 4);
    assert_refused("a: !!int 1\n", "tag", 1, 4);
    assert_refused("a: 1\n---\nb: 2\n", "several-documents", 2, 1);
    assert_refused("%YAML 1.1\n---\na: 1\n", "directive", 1, 1);
    assert_refused("? [a, b]\n: 1\n", "bad-key", 1, 3);
    assert_refused("a: \"x\\0y\"\n", "bad-text", 1, 4);
}

TEST(a_syntax_error_names_its_place)
{
    assert_refused("a: 1\nb: [1, 2\nc: 3\n", "yaml-syntax", 3, 2);
    assert_refused("a: 1\n\tb: 2\n", "yaml-syntax", 2, 1);
    assert_refused("a: 1\nb: \xff\n", "yaml-syntax", 2, 4);
}

TEST(an_empty_text_is_told)
{
    assert_refused("", "empty", 1, 1);
    assert_refused("# nothing\n", "empty", 1, 1);
}

TEST(nesting_deeper_than_the_bound_is_refused)
{
    char text[80];
    memset(text, '[', 33);
    memset(text + 33, ']', 33);
    text[66] = '\0';
    assert_refused(text, "too-deep", 1, 33);
}

TEST(more_values_than_the_bound_are_refused)
{
    AUTO_TEXT text = {0};
    for (int i = 0; i < 100001; i++)
        text_add(&text, "- a\n");
    struct yaml_document document;
    struct findings findings;
    parse(text.bytes, &document, &findings);
    CU_ASSERT_PTR_NULL(document.root);
    CU_ASSERT_STRING_EQUAL(findings.items[0].rule, "too-big");
    findings_done(&findings);
    yaml_done(&document);
}

TESTS(T(every_value_knows_its_place_and_its_key),
      T(a_key_that_stands_twice_is_a_finding_at_the_second_place),
      T(what_makes_one_text_mean_two_things_is_refused), T(a_syntax_error_names_its_place),
      T(an_empty_text_is_told), T(nesting_deeper_than_the_bound_is_refused),
      T(more_values_than_the_bound_are_refused))
