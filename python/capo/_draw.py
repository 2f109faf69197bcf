"""capo.draw: an order as a picture that carries its verdict."""

from capo import _capo
from capo._order import taken
from capo._simulate import _settings


class Picture:
    """What ``capo draw`` draws; notebooks show it.

    >>> import capo
    >>> picture = capo.draw([1, 1, -1, -1], cost={"f": 1, "b": 2})
    >>> picture.svg[:5], "accepted" in picture.svg
    ('<svg ', True)
    """

    __slots__ = ("_draw",)

    def __init__(self, draw):
        self._draw = draw

    @property
    def svg(self):
        """The picture as SVG."""
        return self._draw("svg")

    @property
    def html(self):
        """A page to look around in, which needs no other file."""
        return self._draw("html")

    def save(self, path):
        """Writes the picture to a file that ends in ``.svg`` or ``.html``; any other ending is a ValueError."""
        name = str(path).lower()
        if not name.endswith((".svg", ".html", ".htm")):
            raise ValueError(f"path: {str(path)!r} ends neither in .svg nor in .html; `capo draw` writes other formats")
        text = self.svg if name.endswith(".svg") else self.html
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_svg_(self):
        return self.svg


def draw(
    order,
    *,
    cost=None,
    mem=None,
    num_layers_per_chunk=None,
    delayed=None,
    modules=None,
    plan=None,
    topology=None,
    comm=None,
    paper=False,
    fold=False,
    path=True,
    against=None,
    te_version=None,
):
    """Draw when each task of an order runs, with the verdict and what is wrong in red.

    ``cost`` and ``mem`` are those of :func:`capo.simulate`; ``paper`` makes a column of a paper in
    greys, ``fold`` lines of a long step, ``path=False`` leaves out the critical path, and ``against``
    is an order that is drawn below the first. The rest are those of :func:`capo.check`. An order that
    cannot run is drawn as far as it goes.

    >>> import capo
    >>> capo.draw([1, -1], against=[1, 1, -1, -1], paper=True).svg.count('class="verdict"')
    2
    """
    given, name = taken(order)
    other, other_name = (None, "") if against is None else taken(against)

    def rendered(form):
        return _capo.draw(
            given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm,
            _settings(cost), _settings(mem), form, paper, fold, path, other, other_name,
            te_version,
        )

    return Picture(rendered)
