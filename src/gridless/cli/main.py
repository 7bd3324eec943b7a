"""The command line. A user's mistake ends with exit code 2 and a message, never a traceback."""

import sys
from contextlib import suppress
from importlib import import_module

import click

from gridless import __version__
from gridless.__main__ import INTERRUPTED
from gridless.errors import InputError

# In the order of use. Each is the command `NAME` in gridless/cli/NAME.py or in the file of FILES,
# loaded when it is asked for; none of these files loads torch, which takes longer than everything
# else before the work.
VERBS = (
    *("example", "init", "audit", "fit", "expect", "measure", "closure", "report", "export"),
    *("plan", "review"),
    *("demo", "paper"),
)
SENTENCE = 200  # letters that the first sentence of a verb may have
FILES = {"example": "examples", "demo": "examples", "paper": "examples"}


class _Verbs(click.Group):
    """The verbs; an InputError becomes a message on stderr and exit code 2."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module = import_module(f"gridless.cli.{FILES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The first sentence of every verb as a whole: click would cut it at the line's end."""
        verbs = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, verb.get_short_help_str(SENTENCE)) for name, verb in verbs if verb]
            )

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except InputError as error:
            with suppress(OSError):  # of a full disk behind stderr
                click.echo(f"gridless: {error}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            with suppress(OSError):
                click.echo("gridless: interrupted", err=True)
            sys.exit(INTERRUPTED)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Continuous maximum-likelihood estimates from simulation on a grid.

    First time here? `gridless example` writes small files of a top-quark mass, with an analysis
    file and five commands to try on them. For files of your own, `gridless init` writes an
    analysis file to edit. Every command has --help with an example.
    """
