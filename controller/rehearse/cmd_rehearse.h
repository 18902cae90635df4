/* `broom rehearse`: play a fault against a simulated cluster and check how it ends. */
#ifndef BROOM_REHEARSE_CMD_REHEARSE_H
#define BROOM_REHEARSE_CMD_REHEARSE_H

/* argv[0] is the command's name. Returns the exit code of formats.md section 6. */
int cmd_rehearse(int argc, char **argv);

#endif
