/* forced.c: see forced.h. */
#include "cli/forced.h"

static void ignore(void *user, const struct dsml_event *event)
{
    (void)user;
    (void)event;
}

void forced_open(struct forced *f, const struct tokenizer *t, const struct hadal_engine_info *info,
    int is_thinking)
{
    const struct dialect *d = info->dialect ? dialect_find(info->dialect) : NULL;
    *f = (struct forced){.tokenizer = d ? t : NULL};
    if (d)
        dsml_open(&f->parser, d, is_thinking);
    f->parser.take = ignore;
}

int forced_take(struct forced *f, const int32_t *ids, int n, struct err *e)
{
    for (int i = 0; f->tokenizer && i < n; i++)
        if (dsml_push(&f->parser, tokenizer_bytes(f->tokenizer, ids[i]), e))
            return -1;
    return 0;
}

int forced_expect(struct forced *f, struct hadal_turn *turn, struct err *e)
{
    turn->n_expected = 0;
    if (!f->tokenizer)
        return 0;
    buf_clear(&f->text);
    f->ids.n = 0;
    dsml_forced(&f->parser, &f->text);
    if (!f->text.n_byte)
        return 0;
    if (f->text.is_broken)
        return err_set(e, ERR_MEMORY, "no memory for a tag");
    if (tokenizer_encode(f->tokenizer, (struct text){f->text.data, f->text.n_byte},
            TOKENIZER_SPECIALS, &f->ids, e))
        return -1;
    turn->expected = f->ids.ids;
    turn->n_expected = (int)f->ids.n;
    return 0;
}

void forced_close(struct forced *f)
{
    if (f->tokenizer)
        dsml_close(&f->parser);
    buf_free(&f->text);
    token_list_free(&f->ids);
}
