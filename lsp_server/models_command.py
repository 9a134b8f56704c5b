"""`redraft models list | info | use | pull | export`: which models there are, what they need, which one to use.

Responsible for the command's arguments and for what it prints. Only `pull` opens a connection, to the hub alone. Knows
nothing of a running server.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from model.catalogue import KNOWN, Known, family_named, fitness
from model.chat import chat_template
from model.config import ModelError, Quantize
from model.evaluation.progress import progress
from model.families import Family, is_ours, open_published
from model.footprint import (
    GIB,
    cache_bytes,
    needed_gib,
    on_disk,
    parameters,
    quantized_gib,
    there_gib,
)
from model.gemma import is_gemma, model_class
from model.hub import CHUNK, Hub, HubError
from model.library import EMBEDDED, Choice, choose, chosen, folder_of, models_folder, pulled
from model.published import read_json
from model.published_prompt import missing_tags
from model.pull import expected_gib, fetch_small, fetch_weights, plan
from model.quantize import bitsandbytes
from model.targets import check_folder

BITS: tuple[Quantize, ...] = ("int8", "int4")
LATER = "a server that runs takes it when it starts again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="models that are here, and others that are known")
    about = actions.add_parser("info", help="what a model is, what it serves, and what it needs")
    about.add_argument("model", help="a pulled model, a folder, or `embedded`")
    use = actions.add_parser("use", help="the model to use where the settings name none")
    use.add_argument("model", help="a pulled model, a folder, or `embedded`")
    use.add_argument(
        "--instruct",
        action="store_true",
        help="ask it in a chat for what it was not trained to do (only models that follow instructions)",
    )
    use.add_argument(
        "--quantize",
        choices=BITS,
        help="round its weights to 8 or 4 bits when it is loaded, for a GPU that has too little memory",
    )
    pull = actions.add_parser("pull", help="download a model from the hub")
    pull.add_argument("model", metavar="OWNER/NAME")
    pull.add_argument("--revision", default="main", help="branch, tag or commit (default: main)")
    out = actions.add_parser("export", help="write Redraft's own model as a folder for vLLM")
    out.add_argument("model", help="`embedded`, or the folder of a model that was trained here")
    out.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="folder to write, new or empty"
    )
    out.add_argument(
        "--dtype",
        choices=("bfloat16", "float16"),
        default="bfloat16",
        help="precision of the weights (default: bfloat16)",
    )
    out.add_argument(
        "--check",
        action="store_true",
        help="run a text through both, to tell how far their logits are apart",
    )


def run(options: argparse.Namespace) -> int:
    """Carry the action out; 1 when it fails."""
    actions = {"list": list_models, "info": info, "use": use, "pull": pull, "export": export}
    try:
        return actions[options.action](options)
    except (ModelError, HubError, OSError) as error:
        print(f"redraft models: {error}", file=sys.stderr)
        return 1


def list_models(_: argparse.Namespace) -> int:
    """The models that are here, then those that could be pulled."""
    where, free = there_gib()
    now = chosen().model
    print(f"{where}: {'unknown' if free is None else f'{free:.1f}'} GiB free\n")
    print(f"{'':2}{'model':60} {'family':17} {'size':>6} {'needs':>9}  fim / next edit  licence")
    print(f"{'*' if now == EMBEDDED else '':2}{EMBEDDED:60} trained for both, shipped with Redraft")
    known = {one.name: one for one in KNOWN}
    here = pulled()
    for name in here:
        try:
            print(row(name, known.get(name), now))
        except ModelError as error:
            print(f"  {name:60} cannot be used: {error}")
    if now not in (EMBEDDED, *here):
        print(f"* {now}")
    print("\nknown, not pulled:")
    for one in KNOWN:
        if one.name not in here:
            print(row(one.name, one, now))
    print(f"\n* is used. Pulled models are in {models_folder()}.")
    return 0


def row(name: str, known: Known | None, now: str) -> str:
    """One line of the list, from the files of a model that is here, else from what is known."""
    folder = models_folder() / name
    if folder.exists():
        family = open_published(folder).family
        count, licence = parameters(folder), str(read_json(folder / "redraft.json").get("licence"))
    else:
        assert known is not None
        family, count, licence = (
            family_named(known.family),
            int(known.billions * 1e9),
            known.licence,
        )
    fit = fitness(family)
    return (
        f"{'*' if name == now else '':2}{name:60} {family.name:17} {count / 1e9:5.1f}B "
        f"{needed_gib(count):5.1f} GiB  {fit['fim']} / {fit['next_edit']}  {licence}"
    )


def info(options: argparse.Namespace) -> int:
    """All that can be told of a model without loading it."""
    for known in KNOWN:
        if known.name == options.model and options.model not in pulled():
            print(f"{known.name} is not here; `redraft models pull {known.name}` downloads it")
            tell_family(family_named(known.family))
            tell_memory(int(known.billions * 1e9), 0)
            print(f"licence      {known.licence} (as stated; read it on the model's page)")
            return 0
    folder = folder_of(options.model)
    if folder is None or is_ours(folder):
        print(f"{options.model}: Redraft's own layout; `redraft doctor` tells of it")
        return 0
    if is_gemma(folder):
        tell_gemma(folder)
    else:
        tell_folder(folder, options.model if options.model in pulled() else str(folder.resolve()))
    return 0


def tell_gemma(folder: Path) -> None:
    """What the files of a DiffusionGemma say, and whether transformers can run it."""
    model_class()
    print(f"model        DiffusionGemma in {folder}, run by transformers")
    print("serves       fim: by instruction; next edit: by instruction")
    print(f"on disk      {on_disk(folder) / GIB:.2f} GiB")
    tell_memory(parameters(folder), 0)
    print("licence      not stated; see its README")


def tell_folder(folder: Path, named: str) -> None:
    """What the files of a model say; `named` is what it is chosen by."""
    published = open_published(folder)
    published.weights()
    config, tokenizer = published.config, published.tokenizer
    names = {index: text for text, index in tokenizer.control.items()}
    own = read_json(folder / "redraft.json")
    print(f"model        {config.name} in {folder}")
    if "revision" in own:
        print(f"revision     {own['revision']}")
    tell_family(published.family)
    if missing := missing_tags(published):
        print(f"             but its tokenizer lacks {', '.join(missing)}, so it fills no holes")
    print(f"             {'has' if chat_template(folder) else 'has no'} chat template")
    print(
        f"mask         {names.get(published.mask, '?')} ({published.mask}), blocks of {published.block}"
    )
    ends = ", ".join(f"{names.get(end, '?')} ({end})" for end in sorted(published.ends))
    print(f"ends         {ends}")
    if published.expand is not None:
        print(f"expand       {names.get(published.expand)} ({published.expand})")
    print(f"context      {config.max_positions} tokens at most")
    print(f"on disk      {on_disk(folder) / GIB:.2f} GiB")
    count, cache = parameters(folder), cache_bytes(config, min(8192, config.max_positions))
    tell_memory(count, cache)
    smaller = (f"{quantized_gib(count, config, how, cache):.1f} GiB with {how}" for how in BITS)
    print(f"             quantised {', '.join(smaller)} (--quantize)")
    if (now := chosen()).quantize and now.model == named:
        print(f"             it is used with --quantize {now.quantize}")
    print(f"licence      {own.get('licence', 'not stated; see its README')}")


def tell_family(family: Family) -> None:
    fit = fitness(family)
    print(
        f"family       {family.name} ({family.models}): {family.attention.replace('_', ' ')} attention"
    )
    print(f"serves       fim: {fit['fim']}; next edit: {fit['next_edit']}")


def tell_memory(count: int, cache: int) -> None:
    where, free = there_gib()
    need = needed_gib(count, cache)
    print(f"parameters   {count / 1e9:.2f} billion")
    print(f"memory       needs about {need:.1f} GiB; {where} has {free or 0:.1f} GiB free")
    if free is not None and need > free:
        print("             that is not enough")


def use(options: argparse.Namespace) -> int:
    """Remember a model, after a look at whether it can be used."""
    folder = folder_of(options.model)
    if folder is not None and is_gemma(folder):
        model_class()
        if not options.instruct:
            raise ModelError(
                f"{options.model} was trained for neither mode; with --instruct it can be asked in a chat"
            )
    elif folder is not None and not is_ours(folder):
        published = open_published(folder)
        published.weights()
        told = chat_template(folder) is not None
        if options.instruct and not told:
            raise ModelError(f"{options.model} has no chat template: it follows no instructions")
        if not options.instruct and (published.family.infill is None or missing_tags(published)):
            advice = "; with --instruct it can be asked in a chat" if told else ""
            raise ModelError(f"{options.model} was trained for neither mode{advice}")
    if options.quantize is not None:
        if folder is None or is_ours(folder) or is_gemma(folder):
            raise ModelError(
                f"{options.model} cannot be quantised; open models of the families can"
            )
        bitsandbytes(options.quantize)
    choose(Choice(options.model, options.instruct, options.quantize))
    print(f"{chosen().model} is used from now on; {LATER}")
    return 0


def pull(options: argparse.Namespace) -> int:
    """Download a model: first its small files, to know that it can be used, then the weights."""
    hub = Hub()
    todo = plan(hub, options.model, options.revision)
    print(
        f"{todo.repository.name} at {todo.repository.revision[:12]}, licence {todo.repository.licence}"
    )
    published = fetch_small(hub, todo)
    tell_family(published.family)
    where, free = there_gib()
    need = expected_gib(todo)
    print(f"needs about {need:.1f} GiB of memory; {where} has {free or 0:.1f} GiB free")
    if free is not None and need > free:
        print("that is not enough; it is pulled all the same")
    print(f"{todo.left / GIB:.2f} of {todo.size / GIB:.2f} GiB are to come")
    for _ in progress(fetch_weights(hub, todo), "pull, MiB", max(1, -(-todo.left // CHUNK))):
        pass
    print(f"{todo.target}: all checksums are right. `redraft models use {options.model}` uses it.")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write a model in the layout that vLLM serves, and say how, and what is not in it."""
    from model import bundle, vllm_card, vllm_export

    check_folder(options.out)
    source = folder_of(options.model) or bundle.EMBEDDED
    config = vllm_export.export(source, options.out, options.dtype)
    files = list(options.out.glob("*.safetensors"))
    size = sum(path.stat().st_size for path in files) / GIB
    print(f"{config.name} is in {options.out}: {len(files)} weight file(s), {size:.2f} GiB")
    if options.check:
        found = vllm_export.compare(source, options.out)
        print(
            f"logits are {found.mean:.4f} apart on average and {found.most:.4f} at most; "
            f"the likeliest token is the same at {found.same_first} of {found.places} places"
        )
    print("It continues text causally; block diffusion was not trained into it (see its README).")
    print(f"\n{vllm_card.serve_command(options.out, config)}")
    return 0
