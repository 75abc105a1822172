/*
 * variables.h - variables of the environment that hold one value.
 */
#ifndef MEMWALL_SRC_BASE_VARIABLES_H
#define MEMWALL_SRC_BASE_VARIABLES_H

/*
 * Remove white space and characters that cannot be seen from the ends of all variables that memwall
 * and its libraries read, and expand "~/" and "$NAME" in those with a path.  Secrets of containers end in a newline, and files
 * of variables from Windows in a carriage return, which nobody sees.  Call it before anything
 * reads them, while there is one thread.
 */
void variables_clean(void);

/* Returns the value of a variable, or NULL if it is not set or empty. */
const char *variable(const char *name);

#endif
