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
        """Writes the picture to a file that ends in ``.svg`` or ``.html``."""
        text = self.html if str(path).endswith((".html", ".htm")) else self.svg
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
):
    """Draw when each task of an order runs, with the verdict and what is wrong in red.

    ``cost`` and ``mem`` are those of :func:`capo.simulate`, the rest those of :func:`capo.check`. An
    order that cannot run is drawn as far as it goes.
    """
    given, name = taken(order)

    def rendered(form):
        return _capo.draw(
            given, name, num_layers_per_chunk, delayed, modules, plan, topology, comm,
            _settings(cost), _settings(mem), form,
        )

    return Picture(rendered)
