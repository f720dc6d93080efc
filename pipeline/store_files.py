"""A folder of whole files: a file is there complete or not there at all. Local folder or any URL that Arrow knows."""

import contextlib
import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pipeline.errors import UserError

if TYPE_CHECKING:
    import pyarrow.fs as arrow_fs

TEMPORARY = ".tmp"
OBJECT_STORES = ("s3", "gcs", "abfs")  # have no folders; an empty one would stay behind as an object


@contextmanager
def said_in_one_line(url: str, what: str) -> Iterator[None]:
    """Turn the operating system's refusals into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise UserError(_refusal(error, url, what)) from error


def _refusal(error: OSError, url: str, what: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{url}: the disk is full while {what}; free some space and run again with resume=true"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{url}: not allowed to write there while {what}; choose another folder with results=FOLDER"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{url}: a file stands where a folder is needed while {what}; choose another with results=FOLDER"
    text = " ".join(str(error).split())[:300]
    return f"{url}: failed while {what}: {text}; check the destination and run again with resume=true"


def is_remote(url: str) -> bool:
    """Return whether the destination is a URL of another filesystem than this machine's."""
    return "://" in url and not url.startswith("file://")


def open_folder(url: str) -> "LocalFolder | RemoteFolder":
    """Return the folder that a path or URL names; nothing is written yet."""
    if not is_remote(url):
        return LocalFolder(url.removeprefix("file://"))
    with said_in_one_line(url, "connecting"):
        return RemoteFolder(url)


class LocalFolder:
    """A folder on this machine. Files are written aside, fsynced and renamed."""

    def __init__(self, path: str | os.PathLike[str]):
        """Name the folder."""
        self.url = str(path)
        self.path = Path(path)

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write one file; a crash at any moment leaves the old file, the new one, or a `.tmp` beside it."""
        with self.stream(name) as stream:
            stream.write(content)

    @contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file to write; it appears, whole, when the block ends, and not at all if the block fails."""
        target = self.path / name
        aside = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}{TEMPORARY}")
        with said_in_one_line(self.url, f"writing {name}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(aside, "wb") as stream:
                    yield stream
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(aside, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    aside.unlink(missing_ok=True)
                raise
            self._fsync_folder(target.parent)

    def _fsync_folder(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none."""
        path = self.path / name
        with said_in_one_line(self.url, f"reading {name}"):
            return path.read_bytes() if path.is_file() else None

    def names(self, below: str) -> list[str]:
        """Return the names of all files below a subfolder, sorted."""
        found = (self.path / below).rglob("*")
        return sorted(each.relative_to(self.path).as_posix() for each in found if not each.is_dir())

    def delete(self, name: str) -> None:
        """Delete a file if it is there, and folders that this leaves empty."""
        path = self.path / name
        with said_in_one_line(self.url, f"deleting {name}"):
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self.path or not folder.is_dir() or any(folder.iterdir()):
                    break
                folder.rmdir()


class RemoteFolder:
    """A folder in an object store or on another filesystem, where a written file appears whole when it is closed."""

    def __init__(self, url: str):
        """Connect; credentials and regions come from the environment, as Arrow and fsspec read them."""
        self.url = url.rstrip("/")
        self.filesystem, path = filesystem_of(url)
        self.path = path.rstrip("/")

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write one file."""
        with self.stream(name) as stream:
            stream.write(content)

    @contextmanager
    def stream(self, name: str) -> Iterator[Any]:
        """Open a file to write; it appears when it is closed."""
        with said_in_one_line(self.url, f"writing {name}"):
            path = f"{self.path}/{name}"
            if self.filesystem.type_name not in OBJECT_STORES:
                self.filesystem.create_dir(path.rpartition("/")[0], recursive=True)
            with self.filesystem.open_output_stream(path) as stream:
                yield stream

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none."""
        with said_in_one_line(self.url, f"reading {name}"):
            path = f"{self.path}/{name}"
            if self.filesystem.get_file_info(path).type != _arrow().FileType.File:
                return None
            with self.filesystem.open_input_stream(path) as stream:
                return stream.read()

    def names(self, below: str) -> list[str]:
        """Return the names of all files below a subfolder, sorted."""
        chosen = _arrow().FileSelector(f"{self.path}/{below}", allow_not_found=True, recursive=True)
        with said_in_one_line(self.url, f"listing {below}"):
            found = self.filesystem.get_file_info(chosen)
        return sorted(each.path[len(self.path) + 1 :] for each in found if each.type == _arrow().FileType.File)

    def delete(self, name: str) -> None:
        """Delete a file if it is there."""
        with said_in_one_line(self.url, f"deleting {name}"):
            path = f"{self.path}/{name}"
            if self.filesystem.get_file_info(path).type == _arrow().FileType.File:
                self.filesystem.delete_file(path)


def _arrow() -> Any:
    """Return Arrow's filesystems, which no folder on this machine needs."""
    import pyarrow.fs

    return pyarrow.fs


def filesystem_of(url: str) -> "tuple[arrow_fs.FileSystem, str]":
    """Return (filesystem, path in it) of a URL: Arrow's own if it has one, else fsspec's."""
    try:
        return _arrow().FileSystem.from_uri(url)
    except (ValueError, NotImplementedError):
        return _through_fsspec(url)


def _through_fsspec(url: str) -> "tuple[arrow_fs.FileSystem, str]":
    try:
        import fsspec  # pyright: ignore[reportMissingImports]  an extra
    except ImportError as error:
        scheme = url.partition("://")[0]
        raise UserError(
            f"{url}: {scheme}:// needs the package fsspec; pip install fsspec and its {scheme} driver"
        ) from error
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise UserError(f"{url}: {' '.join(str(error).split())}; use a folder or a URL that fsspec knows") from error
    return _arrow().PyFileSystem(_arrow().FSSpecHandler(filesystem)), path
