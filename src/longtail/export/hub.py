"""Saved models on the Hugging Face hub, there and back.

    push   model folder  ->  one commit: its files, README.md (the model card) and config.json (by which the hub counts)
    pull   repository at a revision  ->  its commit  ->  files of that commit, compared with their checksums  ->  folder

Models hold no code and no pickle, so nothing has to be trusted. A download fetches only what the model's manifest
names, and nothing takes the place of an older model before all of it has the checksums that the manifest says.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longtail.errors import ConfigError, LongtailError, MissingExtraError, ModelFormatError
from longtail.files import FileLock, held, link_target, remove
from longtail.methods import load_model
from longtail.methods.base import MODEL, Method
from longtail.persist import MANIFEST, Folder, check_replaceable, listed_files
from longtail.replacing import settle, swap_in
from longtail.report.card import LIBRARY, TASK, model_card
from longtail.tables import json_text

CARD, CONFIG = "README.md", "config.json"


@dataclass(frozen=True)
class HubModel:
    """A model on the hub, at one commit."""

    repository: str
    revision: str
    """The commit."""
    address: str
    """Where people see it."""


def push(
    model: str | Path,
    repository: str,
    *,
    report: Mapping[str, Any] | None = None,
    languages: Sequence[str] = (),
    licence: str | None = None,
    branch: str = "main",
    private: bool = False,
) -> HubModel:
    """Upload a saved model in one commit, and return where it is.

    Files of an older longtail model in the repository that this one does not have are deleted by the same commit.

    Args:
        model: The folder of the model.
        repository: The repository, such as `name/model`; it is made if it is not there.
        report: An evaluation of the model (`make_report`), whose figures go into the card.
        languages: Codes of the languages of its texts, such as en.
        licence: The licence that the model is shared under, as the hub writes it, such as apache-2.0.
        branch: The branch that gets the commit.
        private: Make the repository private if it is new.
    """
    hub = _library()
    tagger, folder = load_model(model, verify=True), link_target(Path(model))
    card = model_card(tagger, folder, report=report, languages=languages, licence=licence, repository=repository)
    contents: dict[str, Any] = {
        CARD: card.encode(),
        CONFIG: json_text(_config(tagger), indent=1).encode(),
        **{name: str(folder / name) for name in (*listed_files(folder, MODEL), MANIFEST)},
    }
    with _answers(hub, repository):
        api = hub.HfApi()
        api.create_repo(repository, repo_type="model", private=private, exist_ok=True)
        if branch != "main":
            api.create_branch(repository, branch=branch, exist_ok=True)
        stale = _model_files(api, repository, branch) - set(contents)
        operations = [hub.CommitOperationAdd(name, content) for name, content in contents.items()]
        operations += [hub.CommitOperationDelete(name) for name in sorted(stale)]
        commit = api.create_commit(
            repository, operations, commit_message=f"Upload a longtail model ({tagger.name})", revision=branch
        )
    return HubModel(repository, commit.oid, str(commit.repo_url))


def pull(repository: str, folder: str | Path, *, revision: str = "main") -> HubModel:
    """Download a model, verify it, and put it into a folder; an older model there is replaced in one step.

    Args:
        repository: The repository, such as `name/model`.
        folder: Where the model is put.
        revision: A commit, tag or branch. It is resolved to a commit first, and all files are those of that commit.
    """
    hub = _library()
    check_replaceable(folder, MODEL)
    final = link_target(Path(folder))
    temporary = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    final.parent.mkdir(parents=True, exist_ok=True)
    with held(FileLock(final)):
        settle(final)
        try:
            temporary.mkdir()
            commit = _download(hub, repository, revision, temporary)
            Folder(temporary, MODEL, verify=True)
            check_replaceable(folder, MODEL)
            swap_in(temporary, final)
        finally:
            remove(temporary)
    return HubModel(repository, commit, f"{hub.constants.ENDPOINT}/{repository}/tree/{commit}")


def _download(hub: Any, repository: str, revision: str, folder: Path) -> str:
    """Fetch manifest and files of a model into an empty folder, and return their commit."""
    with _answers(hub, repository):
        api = hub.HfApi()
        commit = str(api.model_info(repository, revision=revision).sha)
        present = set(api.list_repo_files(repository, revision=commit))
        if MANIFEST not in present:
            raise ModelFormatError(
                f"{repository} must hold a longtail model, but it has no {MANIFEST}; name another repository"
            )
        cache = folder / ".cache"
        _fetch(api, repository, commit, MANIFEST, folder=folder, cache=cache)
        for name in listed_files(folder, MODEL):
            if name not in present:
                raise ModelFormatError(f"{repository} must hold all files of its model, but {name} is missing")
            _fetch(api, repository, commit, name, folder=folder, cache=cache)
        shutil.rmtree(cache)
    return commit


def _fetch(api: Any, repository: str, commit: str, name: str, *, folder: Path, cache: Path) -> None:
    """Move a file of a commit into a folder, by way of a cache inside it."""
    fetched = Path(api.hf_hub_download(repository, name, revision=commit, cache_dir=cache))
    shutil.move(fetched.resolve(), folder / name)


def _model_files(api: Any, repository: str, branch: str) -> set[str]:
    """Return the files of a repository that belong to the longtail model in it."""
    if MANIFEST not in set(api.list_repo_files(repository, revision=branch)):
        return set()
    with TemporaryDirectory() as name:
        folder = Path(name)
        _fetch(api, repository, branch, MANIFEST, folder=folder, cache=folder / ".cache")
        return set(listed_files(folder, MODEL))


def _config(model: Method) -> dict[str, Any]:
    """Return the few facts by which programs know what a repository holds; the hub counts downloads of this file."""
    facts = model.facts_
    return {
        "library_name": LIBRARY,
        "pipeline_tag": TASK,
        "method": model.name,
        "n_labels": len(model.vocabulary_),
        "n_training_texts": facts["n_texts"],
        "fingerprint": facts["fingerprint"],
    }


@contextmanager
def _answers(hub: Any, repository: str) -> Iterator[None]:
    """Keep the hub's library quiet, and turn what it raises into errors of one line with a next step."""
    errors, bars = hub.errors, not hub.utils.are_progress_bars_disabled()
    try:
        hub.utils.disable_progress_bars()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it takes the vocabulary for a data set
            yield
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"{repository} has no such revision; name a commit, tag or branch of it") from error
    except errors.EntryNotFoundError as error:
        raise ModelFormatError(f"{repository} lacks a file of its model ({error}); push the model again") from error
    except (errors.RepositoryNotFoundError, errors.GatedRepoError) as error:
        raise ConfigError(
            f"{repository} is not on the hub, or you may not see it; check the name, or log in (hf auth login)"
        ) from error
    except errors.HFValidationError as error:
        raise ConfigError(f"a repository must be named like name/model, got '{repository}'") from error
    except (errors.HfHubHTTPError, errors.OfflineModeIsEnabled, OSError) as error:
        reason = " ".join(str(error).split())[:300]
        raise LongtailError(f"the hub did not do it for {repository}: {reason}; try again, or log in") from error
    finally:
        if bars:
            hub.utils.enable_progress_bars()


def _library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
        import huggingface_hub.utils
    except ImportError as error:
        raise MissingExtraError(
            f"the hub needs {error.name}, not installed here; install with pip install 'longtail[hub]'"
        ) from error
    return huggingface_hub
