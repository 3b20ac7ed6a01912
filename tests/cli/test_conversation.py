"""The chat, on a pseudo-terminal and from a pipe."""
import json


def test_chat_from_a_pipe(run):
    r = run("run", "-i", "-q", text="hello\n\n  \n//bin\nlast line without its end")
    assert r.stdout == b"You said: hello\nYou said: /bin\nYou said: last line without its end\n" and r.returncode == 0


def test_messages_of_several_lines(run):
    r = run("run", "-i", "-q", text='"""a\nb"""\nc\\\nd\n"""one line"""\n"""\nopen')
    assert r.stdout == b"You said: a\nb\nYou said: c\nd\nYou said: one line\nYou said: \nopen\n"


def test_commands(run, tmp_path):
    saved = tmp_path / "chat.json"
    text = "\n".join(["/system Be kind.", "first", "second", "/undo", "/show", f"/save {saved}", "/clear", "/show",
                      f"/load {saved}", "/stats", "/set", "/set temperature 0.25", "/set stop said", "third", "/set stop none",
                      "/think 30", "/think", "/think off", "/draft 4", "/draft", "/set draft off", "/draft", "/quit", "never"])
    r = run("run", "-i", text=text)
    assert r.returncode == 0, r.stderr
    assert r.stdout.decode() == ("You said: first\nYou said: second\nsystem: Be kind.\nyou: first\nmodel: You said: first\n"
                                 "system: Be kind.\nYou \n")
    assert json.loads(saved.read_text()) == [
        {"role": "system", "content": "Be kind."}, {"role": "user", "content": "first"},
        {"role": "assistant", "content": "You said: first"}]
    notes = r.stderr.decode()
    for note in ("3 messages written to", "3 messages read from", "temperature 0.25", 'stop "said"', "ended at a stop string",
                 "thinking on, effort 30", "thinking off", "always up to 4 tokens ahead", "one token at a time", "a new conversation; the system message stays"):
        assert note in notes, note


def test_command_errors_keep_the_chat(run):
    text = "/exti\n/frobnicate\n/set colour red\n/set temprature 1\n/set temperature hot\n/set temperature\n/think hardest\n" \
           "/retry\n/undo\n/continue\n/save\n/load /nowhere\n/read /nowhere\nstill here\n"
    r = run("run", "-i", text=text)
    assert r.stdout == b"You said: still here\n" and r.returncode == 1
    errors = r.stderr.decode()
    for text in ("did you mean /exit?", "unknown command /frobnicate; /help lists", "unknown option colour",
                 "did you mean --temperature?", "--temperature: hot is not a number", "/set temperature needs a value",
                 "thinking is off, on or an effort", "/retry: nothing has been asked", "/undo: nothing has been asked",
                 "/continue: there is no answer", "/save needs: FILE", "/nowhere: cannot open"):
        assert text in errors, text


def test_retry_takes_the_next_seed(run, script):
    path = script("babble 30\n")
    first, second, third = run("run", "-i", "-q", "-m", path, "--seed", "5", text="x\n/retry\n/retry\n").stdout.split()
    assert len({first, second, third}) == 3
    assert run("run", "-q", "-m", path, "--seed", "6", "-p", "x").stdout.strip() == second


def test_continue_after_the_limit(run, script):
    path = script("when\nsay abcdef\n")
    r = run("run", "-i", "-q", "-m", path, "-n", "3", text="x\n/continue\n/show\n")
    assert r.stdout == b"abc\nabc\nyou: x\nmodel: abcabc\n"  # the script knows one answer only


def test_read_a_file(run, tmp_path):
    (tmp_path / "f").write_text("contents")
    assert run("run", "-i", "-q", text=f"/read {tmp_path}/f what is it?\n").stdout == b"You said: contents\n\nwhat is it?\n"


def test_failed_question_is_forgotten(run, script):
    path = script("when bad\nfail no luck\nwhen\nsay fine\n")
    r = run("run", "-i", "-q", "-m", path, text="good\nbad\n/show\n")
    assert r.stdout == b"fine\nyou: good\nmodel: fine\n" and b"hadal: no luck" in r.stderr


def test_too_long_a_question_keeps_the_chat(run, script):
    r = run("run", "-i", "-q", "-m", script("context 60\n"), text="short\n" + "x" * 100 + "\nagain\n")
    assert r.stdout == b"You said: short\nYou said: again\n"[:len(r.stdout)] and b"do not fit" in r.stderr


def test_typing(chat):
    t = chat()
    t.expect("/help lists the commands")
    t.expect(">>> ")
    t.line("hello")
    t.expect("You said: hello\r\n")
    t.expect(r"answer 15 tokens")
    t.expect(">>> ")
    t.send("\x1b[A")  # up: the line again
    t.expect("hello")
    t.send("\x15again\r")  # Ctrl-U: away with it
    t.expect("You said: again")
    t.expect(">>> ")
    t.line("/exit")
    assert t.end() == 0


def test_history_is_kept(chat, tmp_path):
    for is_second in (False, True):
        t = chat("-q")
        t.expect(">>> ")
        if is_second:
            t.send("\x1b[A")
            t.expect("remember me")
            t.send("\r")
        else:
            t.line("remember me")
        t.expect("You said: remember me")
        t.expect(">>> ")
        t.send("\x04")
        assert t.end() == 0
    assert "remember" in (tmp_path / ".hadal_history").read_text()


def test_completion(chat):
    t = chat("-q")
    t.expect(">>> ")
    t.send("/sys\tBe kind.\r")
    t.expect("tem Be kind.")
    t.expect(">>> ")
    t.line("/show")
    t.expect("Be kind.")


def test_paste_of_several_lines_is_one_message(chat):
    t = chat("-q")
    t.expect(">>> ")
    t.send("look: \x1b[200~line one\rline two\rline thr\u00e9\u00e9\x1b[201~")
    t.expect(r"\[paste 1: 3 lines\]")
    t.send(" ok?\r")
    t.expect("You said: look: line one\r\nline two\r\nline thr\u00e9\u00e9 ok\\?")
    t.expect(">>> ")
    t.send("\x1b[200~short\x1b[201~er\r")
    t.expect("You said: shorter")


def test_interrupt_stops_the_answer_and_keeps_the_chat(chat, script):
    t = chat("-m", script("when slow\nsay " + "z" * 500 + "\ndelay 20\n"))
    t.expect(">>> ")
    t.line("slow one")
    t.expect("zzz")
    t.send("\x03")
    t.expect("stopped")
    t.expect(">>> ")
    t.line("quick")
    t.expect("You said: quick")
    t.expect(">>> ")
    t.line("/show")
    t.expect("you:.*slow one")
    t.expect("model:.*zzz")
    t.line("/exit")
    assert t.end() == 0


def test_interrupt_at_the_prompt(chat):
    t = chat()
    t.expect(">>> ")
    t.send("half a line")
    t.expect("half a line")
    t.send("\x03")
    t.expect("Ctrl-D or /exit leaves")
    t.expect(">>> ")
    t.line("whole line")
    t.expect("You said: whole line")
    t.expect(">>> ")
    t.send("\x04")
    assert t.end() == 0


def test_no_key_is_lost_at_the_prompt(chat):
    for is_interrupted in 20 * [False, True]:
        t = chat()
        t.expect(">>> ")
        if is_interrupted:
            t.send("half a line")
            t.expect("half a line")
            t.send("\x03")
            t.expect("leaves")
            t.expect(">>> ")
        t.send("\x04")
        assert t.end() == 0


def test_interrupt_during_the_prompt_keeps_the_chat(chat, script):
    t = chat("-m", script("prefill 20\n"))
    t.expect(">>> ")
    t.line("x" * 200)
    t.expect(r"prefill +\d+ %")
    t.send("\x03")
    t.expect("stopped")
    t.expect(">>> ")
    t.line("y")
    t.expect("You said: y")
    t.expect(">>> ")
    t.line("/show")
    t.expect("you:.* y\r\n")
    assert "xxx" not in t.text[t.text.rindex("/show"):]


def test_reasoning_is_dimmed(chat, script):
    path = script("say deep thought</think>42\n")
    t = chat("-m", path, "--think", "on")
    t.expect(">>> ")
    t.line("x")
    t.expect("\x1b\\[2md.*t\x1b\\[0m\r\n42")
    t.expect(">>> ")
    plain = chat("-m", path, "--think", "on", env={"NO_COLOR": "1"})
    plain.expect(">>> ")
    plain.line("x")
    plain.expect("deep thought\r\n42")


def test_steering_characters_are_shown_not_obeyed(chat, script):
    t = chat("-m", script("say a\x1b[31mb\u009bc\n"))
    t.expect(">>> ")
    t.line("x")
    t.expect("a\ufffd\\[31mb\ufffdc")


def test_quiet_terminal_has_no_notes(chat):
    t = chat("-q", "-p", "hello")
    assert t.end() == 0 and t.text == "You said: hello\r\n"
