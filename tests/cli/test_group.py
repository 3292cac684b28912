"""The command line as a whole: help, exit codes, streams, start-up."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from support.tables import every

from rnncli import __version__
from rnncli.cli.bench import COMMANDS as OF_BENCH
from rnncli.cli.command import SECTIONS
from rnncli.cli.group import COMMANDS, GROUPS, TOPICS, cli
from rnncli.cli.options import names_in
from rnncli.models.single_node import single_node_model
from rnncli.numerics import dtype_named
from rnncli.operators import OPERATORS
from rnncli.subjects.command import PLACEHOLDERS


def test_help_lists_every_command(rnncli):
    """`--help` names each command with its line, under what it is for."""
    outcome = rnncli("--help")
    sections = [line[:-1] for line in outcome.out.splitlines() if re.match(r"\w.*:$", line)]

    assert outcome.code == 0
    assert all(name in outcome.out for name in COMMANDS)
    assert sections == ["Options", *GROUPS]


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_summary_is_the_commands_own(name):
    """The table that `--help` prints from says what the command's docstring says."""
    command = cli.get_command(click.Context(cli), name)

    assert command.help.partition("\n")[0] == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    """No option is without help, and each command can show a traceback."""
    command = cli.get_command(click.Context(cli), name)
    options = [param for param in command.params if isinstance(param, click.Option)]

    assert [option.name for option in options if not option.help] == []
    assert "traceback" in {option.name for option in options}


def _options():
    """Every option of every command: (command, option)."""
    commands = [cli.get_command(click.Context(cli), name) for name in COMMANDS]
    for command in {*commands, *OF_BENCH.values()}:
        for option in command.params:
            yield command, option


def test_no_option_takes_a_number_that_is_none():
    """Infinity, NaN, what is below zero and more seconds than a clock has, in any command."""
    numbers = [
        (command.name, option.opts[0], option.type)
        for command, option in _options()
        if isinstance(option.type, click.types.FloatParamType | click.FloatRange)
    ]
    taken = []
    for command, option, kind in numbers:
        for text in ("nan", "inf", "-inf", "-1", "1e300"):
            with contextlib.suppress(click.BadParameter):
                kind.convert(text, None, None)
                taken.append((command, option, text))

    assert len(numbers) > 6
    assert taken == [("bench", "--max-slowdown", "1e300")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_of_an_option_stands_alone(name):
    """It is a sentence or a noun phrase with a full stop, not the rest of one begun elsewhere."""
    command = cli.get_command(click.Context(cli), name)
    helps = [option.help for option in command.params if isinstance(option, click.Option)]

    fragments = ("Of ", "As in ", "At most ", "Instead", "Which ")
    assert [text for text in helps if text.startswith(fragments)] == []
    assert [text for text in helps if not text.partition("  [")[0].endswith(".")] == []


ROOT = Path(__file__).parents[2]
LONGEST_HELP = 190  # characters: two lines


def test_the_help_of_an_option_takes_two_lines():
    """What needs more is on a page that it names, of those in the repository."""
    helps = {
        option.help.partition("  [")[0] for _, option in _options() if getattr(option, "help", None)
    }
    pages = {page for text in helps for page in re.findall(r"docs/[\w/-]+\.md", text)}

    assert [text for text in helps if len(text) > LONGEST_HELP] == []
    assert {*pages} >= {"docs/howto/device.md", "docs/howto/harness.md", "docs/howto/packs.md"}
    assert [page for page in pages if not (ROOT / page).exists()] == []


@every("name", ["", *COMMANDS])
def test_help_breaks_no_word_at_80_columns(name, rnncli, monkeypatch):
    """Names with hyphens, options and examples are whole on the narrowest terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    words = rnncli("help", *filter(None, [name])).out.split()
    command = cli.get_command(click.Context(cli), name) if name else cli
    options = [option.help for option in command.params if isinstance(option, click.Option)]

    written = " ".join([command.help, *options]).split()
    assert [word for word in written if word not in {*words, "\b"}] == []


def test_the_help_of_command_names_every_placeholder():
    """What is in braces in a program's arguments is explained where the option is."""
    command = cli.get_command(click.Context(cli), "verify")
    (option,) = (option for option in command.params if option.name == "command")

    assert [name for name in PLACEHOLDERS if f"{{{name}}}" not in option.help] == []


def loaded_by(program, *arguments):
    """The modules that a process has loaded when the `main` of a program ends well."""
    code = (
        f"import sys; sys.argv = ['rnncli', *{[*map(str, arguments)]!r}]\n"
        f"{program}\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


OURS = "from rnncli.cli import main"
BARE = (
    "import atexit, click, errno, gc, io, signal, time, types\n"
    "@click.command()\n@click.version_option('1')\ndef main(): pass"
)


def test_help_loads_nothing_that_a_bare_click_program_does_not():
    """But for the modules of ours that list the commands."""
    ours = {"rnncli", "rnncli.cli", "rnncli.cli.group"}
    ours |= {f"rnncli.talk{name}" for name in ("", ".terminal", ".waiting", ".words")}
    ours |= {"rnncli.errors", "rnncli.jobs", "rnncli.jobs.signals"}

    assert loaded_by(OURS, "--help") - loaded_by(BARE, "--help") == ours


@pytest.fixture
def tiny(tmp_path):
    """The file of a model of one node that holds its weights."""
    X, W, R = np.ones((3, 2, 4)), np.ones((1, 5, 4)), np.ones((1, 5, 5))
    inputs = {name: v.astype(np.float32) for name, v in (("X", X), ("W", W), ("R", R))}
    outputs = dict.fromkeys(("Y", "Y_h"), dtype_named("float32"))
    proto = single_node_model(OPERATORS["RNN-14"], {"hidden_size": 5}, inputs, outputs, ("W", "R"))
    model = tmp_path / "tiny.onnx"
    model.write_bytes(proto.SerializeToString())
    return model


# What takes its time to import and is for other models, formats, terminals and failures.
IDLE = {"yaml", "rnncli.cases", "rnncli.packs.pack", "rnncli.judging.comparing.comparison"}
IDLE |= {"multiprocessing.context", "concurrent.futures", "h5py", "rich", "numba", "flint"}
IDLE |= {"onnx.reference", "onnxruntime"}
OF_FILES = {"rnncli.files.formats.numpy_files", "rnncli.files.formats.onnx_folder"}


def test_running_a_model_loads_what_it_needs(tiny):
    """Of onnx its messages, not its evaluator; no format but that of its tensors."""
    assert loaded_by(OURS, "run", tiny) & (IDLE | OF_FILES) == set()


def test_reading_and_writing_tensors_loads_their_formats(tiny, tmp_path):
    """And nothing else."""
    np.save(tmp_path / "X.npy", np.ones((3, 2, 4), np.float32))

    loaded = loaded_by(
        OURS, "run", tiny, "-i", f"X={tmp_path / 'X.npy'}", "-o", tmp_path / "out.npz"
    )

    assert loaded & (IDLE | OF_FILES) <= {"rnncli.files.formats.numpy_files"}


def test_running_a_config_loads_no_packs():
    """YAML and the suites it could be of, but no evaluator of models, pack or tensor archive."""
    idle = {"onnx.reference", "rnncli.packs.pack", *OF_FILES, "h5py"}

    assert loaded_by(OURS, "run", "rnn_14") & idle == set()


def test_no_time_goes_into_looking_for_cycles(tiny):
    """Neither while modules are imported, nor as the process ends, with all of them."""
    code = (
        "import atexit, gc, sys\n"
        "def end(): sys.stderr.write(f'{collections() == before} {gc.get_freeze_count() > 9999}')\n"
        "def collections(): return [each['collections'] for each in gc.get_stats()]\n"
        "from rnncli.cli import main\n"
        "atexit.register(end)  # called after what is registered later\n"
        f"before, sys.argv = collections(), ['rnncli', 'run', {str(tiny)!r}]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == "True True"


def test_python_m_is_the_command(spawned):
    """`python -m rnncli --version` works."""
    assert spawned("--version").out == f"rnncli, version {__version__}\n"


def test_closed_pipe_is_not_an_error_message(tmp_path):
    """`rnncli ops | head -1` ends quietly."""
    listing = tmp_path / "listing"
    command = f"'{sys.executable}' -m rnncli ops; echo $? >&2"
    done = subprocess.run(
        ["bash", "-c", f"({command}) | head -c 1 > {listing}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stderr.strip() in {"0", "141"}  # whether head was gone before the last line


@pytest.mark.parametrize("command", ["verify", "relate", "diagnose"])
def test_options_that_judge_are_listed_by_what_they_are_for(rnncli, command):
    """Every option stands under one title, and only what all commands have under none of those."""
    text = rnncli("help", command).out
    parts = re.split(r"^(\w[\w ]*):\n", text, flags=re.MULTILINE)
    titles, bodies = parts[1::2], parts[2::2]
    listed = {
        title: re.findall(r"^  (?:-\w, )?(--[\w-]+)", body, flags=re.MULTILINE)
        for title, body in zip(titles, bodies, strict=True)
    }

    assert tuple(titles) == tuple(title for title in SECTIONS if title in titles)
    assert {"What is judged", "Which cases", "Tolerances", "What passes", "Running"} <= {*titles}
    assert {*listed["Options"]} <= {"--json", "--verbose", "--traceback", "--help"}
    assert "--runtime" in listed["What is judged"]
    assert "--jobs" in listed["Running"]


@every("command", ["run", *GROUPS["Judge"]])
def test_the_help_of_a_command_that_judges_fits_60_lines(rnncli, command, monkeypatch):
    """It names every option, and `rnncli help` describes those that many commands have."""
    monkeypatch.setenv("COLUMNS", "80")
    short, full = rnncli(command, "--help").out, rnncli("help", command).out
    options = {
        opt for option in cli.get_command(click.Context(cli), command).params for opt in option.opts
    }

    assert len(short.splitlines()) <= 60
    assert [name for name in options if name.startswith("--") and name not in short] == []
    assert short == full or f"More, which `rnncli help {command}` describes:" in short


def test_help_of_no_command_is_that_of_all(rnncli):
    """A wrong name is told the right one."""
    assert rnncli("help").out == rnncli("--help").out
    assert "did you mean 'verify'?" in rnncli("help", "verfy").err


@every("topic", TOPICS)
def test_help_lists_the_rows_of_a_topic(rnncli, topic):
    """Each has its sentence; the name of a topic as a command, or a slip of it, is led there."""
    shown = rnncli("help", topic).out.splitlines()

    assert [line.partition("\t")[0] for line in shown[1:]] == [
        str(n) for n in names_in(TOPICS[topic])
    ]
    assert all(len(line.partition("\t")[2]) > 3 for line in shown[1:])
    assert topic in rnncli("help", "--help").out.replace("\n  ", " ")
    assert f"`rnncli help {topic}` lists them" in rnncli(topic).err
    assert f"did you mean '{topic}'?" in rnncli("help", f"{topic}s").err


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_one_word(number):
    """The exit code is 128 and the signal's number, as a shell has it: 130 of Ctrl-C."""
    command = [sys.executable, "-m", "rnncli", "run", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    process.stdin.write("# more than a pipe holds\n" * 10_000)
    process.stdin.flush()  # it is up, and reads
    process.send_signal(number)
    _, err = process.communicate()

    assert (process.returncode, err) == (128 + number, "interrupted\n")


def test_completion_offers_operators_and_readings():
    """The shell completes operator names and readings."""
    environment = {
        **os.environ,
        "_RNNCLI_COMPLETE": "bash_complete",
        "COMP_WORDS": "rnncli ops LSTM-1",
        "COMP_CWORD": "2",
    }
    code = "import sys; sys.argv = ['rnncli']; from rnncli.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )

    assert done.stdout.split() == ["plain,LSTM-1", "plain,LSTM-14"]


def test_every_table_of_names_exists():
    """They are imported on use, in the shell of whoever asks."""
    commands = [cli.get_command(click.Context(cli), name) for name in COMMANDS]
    types = [parameter.type for command in commands for parameter in command.params]
    tables = {
        row.table
        for row in [*types, *(getattr(row, "names", None) for row in types)]
        if hasattr(row, "table")
    }

    assert len(tables) > 10
    assert [table for table in tables if not names_in(table)] == []


COMMAND_OPTIONS = [
    (name, option)
    for name, command in [
        *((name, cli.get_command(click.Context(cli), name)) for name in COMMANDS),
        *((f"bench {name}", command) for name, command in OF_BENCH.items()),
    ]
    for option in command.params
    if isinstance(option, click.Option)
]
SINGLE = [
    pytest.param(name, option, id=f"{name}{option.opts[-1]}")
    for name, option in COMMAND_OPTIONS
    if not (option.multiple or option.count or option.is_flag)
]
SWITCHES = [
    pytest.param(name, option, id=f"{name}{option.opts[-1]}")
    for name, option in COMMAND_OPTIONS
    if option.secondary_opts
]


@every(("name", "option"), SINGLE)
def test_a_value_given_twice_is_an_error(rnncli, name, option):
    """Of every option with one value, by each of its names; the last is not taken in silence."""
    first, last = option.opts[0], option.opts[-1]
    done = rnncli(
        *name.split(), first, "one", f"{last}=two" if last.startswith("--") else f"{last}two"
    )

    assert done.code == 2
    assert f"{first} takes one value, and is given 2: 'one' and 'two'" in done.err


@pytest.mark.parametrize(("name", "option"), SWITCHES)
def test_a_switch_is_not_on_and_off(rnncli, name, option):
    """The same one twice says nothing else than once."""
    on, off = option.opts[0], option.secondary_opts[0]
    done = rnncli(*name.split(), off, on)

    assert done.code == 2
    assert f"{off} and {on} are both given" in done.err
    assert "are both given" not in rnncli(*name.split(), on, on).err


def test_options_of_one_value_are_found():
    """So the claims above are about them all."""
    found = {(case.values[0], case.values[1].opts[-1]) for case in SINGLE}

    assert {("verify", "--select"), ("run", "--backend"), ("generate", "--output")} <= found
    assert ("bench generation", "--cases") in found
    assert SWITCHES


@pytest.mark.parametrize("name", sorted({n for n, o in COMMAND_OPTIONS if "-k" in o.opts}))
def test_a_selection_given_twice_says_how_to_join(rnncli, name):
    """The message is the option that means both; no case has two ids, so either of them."""
    done = rnncli(name, "core", "-k", "lstm", "--select", "not clip or gru")
    of_ids = rnncli(name, "core", "-k", "id:rnn_14_wide", "-k", "id:rnn_14_square")

    assert "; for all of them: -k '(lstm) and (not clip or gru)'" in done.err
    assert "; for all of them: -k '(id:rnn_14_wide) or (id:rnn_14_square)'" in of_ids.err
