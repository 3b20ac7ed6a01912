/* suggest.h: what somebody probably meant when they mistyped a name. */
#ifndef HADAL_CLI_SUGGEST_H
#define HADAL_CLI_SUGGEST_H

/* The closer of two candidates for `typed`; best may be NULL, and stays when `name` is too far off (more than a third of
 * its letters, at least 2 changes) or no closer. A name that begins with what was typed counts as close. */
const char *suggest_closer(const char *typed, const char *best, const char *name);

#endif
