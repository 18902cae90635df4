/* What scontrol prints, as records and fields. Pure; everything returned points into the text.
 *
 * A record begins at a line whose first column holds its key ("NodeName=", "JobId="); its other
 * lines are indented. A line is "Key=Value Key=Value ..."; where the value may hold spaces
 * (a node's Reason, Comment, OS, ...) the key begins the line and has it for itself. Continued
 * lines of a reason hold no fields.
 */
#ifndef BROOM_ACTUATORS_SLURM_TEXT_H
#define BROOM_ACTUATORS_SLURM_TEXT_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

/* The next record that begins with `head` ("NodeName="); false when there is none. Takes it off
 * *rest. */
bool slurm_next_record(struct view *rest, const char *head, struct view *ret_record);

struct slurm_field {
    struct view key, value;
};
/* Begin with {record}. */
struct slurm_reader {
    struct view rest;
    bool inside_line; /* a field of this line was read already */
};
/* The next field; false at the end of the record. */
bool slurm_next_field(struct slurm_reader *reader, struct slurm_field *ret_field);

/* The first field of this name in a text of one record; empty when missing or "(null)". */
struct view slurm_field_of(struct view record, const char *key);

/* Replaces an owned text by a value; what Slurm prints for none ("(null)", "N/A") becomes "". */
void slurm_set_text(char **text, struct view value);

/* BOOT_TIME and ClusterName of `scontrol show config`, whose lines are "KEY   = value". Empty when
 * missing. */
struct view slurm_config_value(struct view config, const char *key);

#endif
