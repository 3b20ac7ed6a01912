/* control_tokens.h: literal texts of the tokens that the chat formats use. Bars are U+FF5C, low
 * blocks U+2581. */
#ifndef HADAL_TEXT_CONTROL_TOKENS_H
#define HADAL_TEXT_CONTROL_TOKENS_H

#define CONTROL_BOS       "<｜begin▁of▁sentence｜>"
#define CONTROL_EOS       "<｜end▁of▁sentence｜>"
#define CONTROL_PAD       "<｜▁pad▁｜>"
#define CONTROL_SYSTEM    "<｜System｜>"
#define CONTROL_USER      "<｜User｜>"
#define CONTROL_ASSISTANT "<｜Assistant｜>"
#define CONTROL_REMINDER  "<｜latest_reminder｜>"
#define CONTROL_THINK     "<think>"
#define CONTROL_END_THINK "</think>"
#define CONTROL_DSML      "｜DSML｜"

#endif
