/* line_editor_libedit.c: see line_editor.h.
 *
 * Pastes: the terminal is asked to bracket them (ESC [200~ ... ESC [201~). A paste of one line is inserted as if typed;
 * one of several lines is kept aside, and a mark like [paste 1: 12 lines] stands for it until the line is finished.
 *
 * Nothing typed may be lost, however fast it comes: the terminal is in its editing mode before the prompt is seen (a
 * Ctrl-D typed before would be swallowed), and SIGINT is let in only where waiting for a key notices it.
 */
#include "cli/line_editor.h"

#include "base/arena.h"

#include <errno.h>
#include <histedit.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>
#include <wchar.h>

enum { MAX_PASTE = 32, MAX_HISTORY = 1000 };
#define PASTE_ON "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define PASTE_END L"\033[201~"

struct paste {
    struct buf text;
    char mark[48];
};

struct line_editor {
    EditLine *el;
    History *history;
    const char *history_file, *prompt;
    const char *const *names;
    struct paste pastes[MAX_PASTE];
    int n_paste;
    sigset_t outside; /* signals blocked outside of the editor */
};

static struct line_editor *editor_of(EditLine *el)
{
    void *l = NULL;
    el_get(el, EL_CLIENTDATA, &l);
    return l;
}

static char *give_prompt(EditLine *el)
{
    return (char *)(size_t)editor_of(el)->prompt;
}

static void append_wide(struct buf *out, wchar_t c)
{
    char bytes[16];
    mbstate_t state = {0};
    size_t n = wcrtomb(bytes, c, &state);
    if (n != (size_t)-1)
        buf_append(out, bytes, n);
}

/* One character from the keyboard: 1, 0 at the end, -1 with EINTR after Ctrl-C. */
static int read_key(EditLine *el, wchar_t *key)
{
    mbstate_t state = {0};
    for (;;) {
        fd_set keyboard;
        char byte;
        FD_ZERO(&keyboard);
        FD_SET(STDIN_FILENO, &keyboard);
        if (pselect(STDIN_FILENO + 1, &keyboard, NULL, NULL, NULL, &editor_of(el)->outside) < 0)
            return -1;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n < 1)
            return (int)n;
        size_t n_used = mbrtowc(key, &byte, 1, &state);
        if (n_used == (size_t)-1)
            state = (mbstate_t){0}; /* not a character of this locale: dropped */
        else if (n_used != (size_t)-2)
            return 1;
    }
}

/* Reads until the end bracket; carriage returns become line feeds. */
static int read_paste(EditLine *el, struct buf *out)
{
    const wchar_t *end = PASTE_END;
    size_t n_end = wcslen(end), n_seen = 0;
    while (n_seen < n_end) {
        wchar_t c;
        if (el_wgetc(el, &c) != 1)
            return -1;
        if (c == end[n_seen]) {
            n_seen++;
            continue;
        }
        for (size_t i = 0; i < n_seen; i++)
            append_wide(out, end[i]);
        n_seen = c == end[0];
        if (!n_seen)
            append_wide(out, c == L'\r' ? L'\n' : c);
    }
    return 0;
}

static int count_lines(const struct buf *text)
{
    int n = 1;
    for (size_t i = 0; i + 1 < text->n_byte; i++)
        n += text->data[i] == '\n';
    return n;
}

static unsigned char take_paste(EditLine *el, wint_t key)
{
    struct line_editor *l = editor_of(el);
    struct buf text = {0};
    (void)key;
    if (read_paste(el, &text))
        return CC_EOF;
    if (text.n_byte && !memchr(text.data, '\n', text.n_byte)) {
        el_insertstr(el, text.data);
        buf_free(&text);
    } else if (text.n_byte && l->n_paste < MAX_PASTE) {
        struct paste *p = &l->pastes[l->n_paste++];
        p->text = text;
        snprintf(p->mark, sizeof p->mark, "[paste %d: %d lines]", l->n_paste, count_lines(&text));
        el_insertstr(el, p->mark);
    } else {
        buf_free(&text);
        return CC_ERROR;
    }
    return CC_REFRESH;
}

/* Completes the word in front of the cursor when it begins the line. */
static unsigned char complete(EditLine *el, wint_t key)
{
    const struct line_editor *l = editor_of(el);
    const LineInfo *line = el_line(el);
    size_t n = (size_t)(line->cursor - line->buffer);
    const char *found = NULL;
    (void)key;
    for (int i = 0; n && l->names[i]; i++)
        if (!strncmp(l->names[i], line->buffer, n)) {
            if (found)
                return CC_ERROR; /* not the only one */
            found = l->names[i];
        }
    if (!found || el_insertstr(el, found + n) || el_insertstr(el, " "))
        return CC_ERROR;
    return CC_REFRESH;
}

struct line_editor *line_editor_open(const char *history_file, const char *const *names)
{
    struct line_editor *l = mem_resize(NULL, sizeof *l);
    HistEvent event;
    if (!l)
        return NULL;
    *l = (struct line_editor){.history_file = history_file, .names = names, .prompt = ""};
    l->el = el_init("hadal", stdin, stdout, stderr);
    l->history = l->el ? history_init() : NULL;
    if (!l->history) {
        line_editor_close(l);
        return NULL;
    }
    history(l->history, &event, H_SETSIZE, MAX_HISTORY);
    history(l->history, &event, H_SETUNIQUE, 1);
    if (history_file)
        history(l->history, &event, H_LOAD, history_file);
    el_set(l->el, EL_CLIENTDATA, l);
    el_set(l->el, EL_PROMPT, give_prompt);
    el_set(l->el, EL_EDITOR, "emacs");
    el_set(l->el, EL_HIST, history, l->history);
    el_set(l->el, EL_SIGNAL, 0);
    el_wset(l->el, EL_GETCFN, read_key);
    /* the narrow form of this call never gives its copies of the names back */
    el_wset(l->el, EL_ADDFN, L"hadal-paste", L"takes a paste", take_paste);
    el_wset(l->el, EL_ADDFN, L"hadal-complete", L"completes a command", complete);
    el_set(l->el, EL_BIND, "\\e[200~", "hadal-paste", NULL);
    el_set(l->el, EL_BIND, "^I", "hadal-complete", NULL);
    return l;
}

/* Copies the line with every mark replaced by the paste it stands for. */
static void expand(const struct line_editor *l, const char *line, size_t n_byte, struct buf *out)
{
    for (size_t i = 0; i < n_byte;) {
        const struct paste *here = NULL;
        for (int k = 0; k < l->n_paste && !here; k++)
            if (!strncmp(line + i, l->pastes[k].mark, strlen(l->pastes[k].mark)))
                here = &l->pastes[k];
        if (here)
            buf_append(out, here->text.data, here->text.n_byte);
        else
            buf_append(out, line + i, 1);
        i += here ? strlen(here->mark) : 1;
    }
}

static void forget_pastes(struct line_editor *l)
{
    while (l->n_paste)
        buf_free(&l->pastes[--l->n_paste].text);
}

enum line_result line_editor_read(struct line_editor *l, const char *prompt, struct buf *out)
{
    int n = 0;
    sigset_t interrupt;
    l->prompt = prompt;
    el_resize(l->el);
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &l->outside);
    fputs(PASTE_ON, stdout);
    fflush(stdout);
    el_set(l->el, EL_PREP_TERM, 1);
    errno = 0;
    const char *line = el_gets(l->el, &n);
    int cause = errno;
    pthread_sigmask(SIG_SETMASK, &l->outside, NULL);
    if (line && n > 0) {
        size_t n_byte = (size_t)n;
        while (n_byte && (line[n_byte - 1] == '\n' || line[n_byte - 1] == '\r'))
            n_byte--;
        expand(l, line, n_byte, out);
    }
    forget_pastes(l);
    fputs(PASTE_OFF, stdout);
    fflush(stdout);
    if (line && n > 0)
        return LINE_READ;
    return n < 0 && cause == EINTR ? LINE_INTERRUPTED : LINE_END;
}

void line_editor_remember(struct line_editor *l, const char *message)
{
    HistEvent event;
    if (!l || !*message)
        return;
    history(l->history, &event, H_ENTER, message);
    if (l->history_file)
        history(l->history, &event, H_SAVE, l->history_file);
}

void line_editor_close(struct line_editor *l)
{
    if (!l)
        return;
    forget_pastes(l);
    if (l->history)
        history_end(l->history);
    if (l->el)
        el_end(l->el);
    mem_free(l);
}
