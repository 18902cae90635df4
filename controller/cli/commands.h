/* The commands of `broom` in this folder. Each parses its own options, prints data on cli->out and
 * words on cli->err, and returns the exit code of formats.md section 6. argv[0] is the command's
 * name.
 */
#ifndef BROOM_CLI_COMMANDS_H
#define BROOM_CLI_COMMANDS_H

#include "controller/cli/cli.h"

int cmd_status(struct cli *cli, int argc, char **argv);
int cmd_jobs(struct cli *cli, int argc, char **argv);
int cmd_ranks(struct cli *cli, int argc, char **argv);
int cmd_topology(struct cli *cli, int argc, char **argv);
int cmd_layout(struct cli *cli, int argc, char **argv);
int cmd_incidents(struct cli *cli, int argc, char **argv); /* list, or the word behind it */
int cmd_incident_show(struct cli *cli, int argc, char **argv);
int cmd_incident_timeline(struct cli *cli, int argc, char **argv);
int cmd_note(struct cli *cli, int argc, char **argv);
int cmd_ack(struct cli *cli, int argc, char **argv);
int cmd_decline(struct cli *cli, int argc, char **argv);
int cmd_approve(struct cli *cli, int argc, char **argv);
int cmd_abort(struct cli *cli, int argc, char **argv);
int cmd_fenced(struct cli *cli, int argc, char **argv);
int cmd_pause(struct cli *cli, int argc, char **argv);
int cmd_resume(struct cli *cli, int argc, char **argv);
int cmd_breaker(struct cli *cli, int argc, char **argv);
int cmd_wait(struct cli *cli, int argc, char **argv);
int cmd_policy(struct cli *cli, int argc, char **argv);
int cmd_export(struct cli *cli, int argc, char **argv);

#endif
