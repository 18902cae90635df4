/* `broom detect`: the verdicts of a recording, one JSON line each, by exactly the engine the daemon
 * runs.
 */
#ifndef BROOM_CLI_CMD_DETECT_H
#define BROOM_CLI_CMD_DETECT_H

/* argv[0] is the command's name. Returns the exit code of formats.md section 6. */
int cmd_detect(int argc, char **argv);

#endif
