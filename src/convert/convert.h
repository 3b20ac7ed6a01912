/* convert.h: `hadal convert`: a checkpoint folder (or a GGUF file in any dialect) becomes one GGUF
 * file of ours.
 *
 * By default nothing is lost: FP4 is repacked into MXFP4, FP8 keeps its bytes and scales, plain
 * tensors keep their type. Formats can be chosen per class of tensors. Draft stages and the
 * tokenizer go into the same file.
 *
 * Bytes go to OUT.part. Its header fixes where everything lies and holds the checksum of every
 * finished tensor, so a conversion that was interrupted goes on where it stopped: finished tensors
 * are hashed again and kept. docs/format.md
 */
#ifndef HADAL_CONVERT_CONVERT_H
#define HADAL_CONVERT_CONVERT_H

#include "base/err.h"

#include <stdint.h>

/* what: "read", "write", "check", "verify"; name of the tensor at hand; bytes of the output, done
 * <= total. */
typedef void (*convert_progress_fn)(
    void *context, const char *what, const char *name, uint64_t done, uint64_t total);

enum { CONVERT_MAX_TYPE = 32 };

struct convert_options {
    const char *input;  /* folder or GGUF file */
    const char *output; /* GGUF file; with verifies_only it must be there already */
    const char *name;   /* general.name; NULL: the input's */
    /* "CLASS=FORMAT": class a weight_class_name or "all", format "keep" or one with an encoder;
     * later ones win. */
    const char *types[CONVERT_MAX_TYPE];
    int n_type;
    int n_thread; /* 0: one per processor */
    int verifies; /* read the result again and compare values with the input */
    int verifies_only;
    convert_progress_fn progress; /* may be NULL */
    void *progress_context;
    const volatile int *is_cancelled; /* looked at now and then; may be NULL */
};

struct convert_report {
    int n_tensor;         /* of the model; scales count with their tensor */
    uint64_t n_byte;      /* of the output file */
    int n_kept;           /* tensors that an earlier run had finished */
    int n_exact;          /* tensors whose values equal the input's, when verified */
    double largest_error; /* relative RMS error of the worst tensor, when verified */
    char worst[96];       /* its name */
};

int convert_run(const struct convert_options *o, struct convert_report *report, struct err *e);

#endif
