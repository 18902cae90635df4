/* `broom replay`: the whole pipeline on a recording, told as a timeline. */
#ifndef BROOM_CLI_CMD_REPLAY_H
#define BROOM_CLI_CMD_REPLAY_H

int cmd_replay(int argc, char **argv); /* returns the exit code */

#endif
