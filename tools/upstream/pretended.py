"""What graph.py asks of PyTorch while it captures, without PyTorch: who owns a tensor's history, and which graph is captured.

Nothing is computed. A tensor has a shape and the module that made it, a graph knows whether it was captured, and a module
that delays its weight gradients keeps one for each backward until it is asked for.
"""

import contextlib
import types


class Tensor:
    dtype, layout, grad = "half", "strided", None

    def __init__(self, shape=(), requires_grad=True, made_by=None):
        self.shape, self.requires_grad, self.made_by = shape, requires_grad, made_by
        self.is_over = False  # its history was gone through


def backward(tensors, grad_tensors=None, retain_graph=False):
    for tensor in tensors:
        if tensor.is_over:
            raise RuntimeError("Trying to backward through the graph a second time")
        tensor.is_over = not retain_graph
        module, given = tensor.made_by
        given.grad = Tensor(given.shape, False)
        module.keep()


class Graph:
    is_captured = False

    def reset(self):
        self.is_captured = False


@contextlib.contextmanager
def capture(graph, **_):
    if graph.is_captured:
        raise RuntimeError("This CUDAGraph instance already owns a captured graph.")
    yield
    graph.is_captured = True


class Module:
    """Stands in for torch.nn.Module and for TransformerEngine's base of modules."""

    training = True

    def __init__(self):
        for moment in ("forward", "forward_pre", "backward", "backward_pre"):
            setattr(self, f"_{moment}_hooks", {})
        self.called = []

    def modules(self):
        return [self]

    def parameters(self):
        return []

    buffers = parameters

    def register_forward_hook(self, hook):
        self.called.append(hook)
        return types.SimpleNamespace(remove=lambda: self.called.remove(hook))

    def __call__(self, given):
        made = self.forward(given)
        for hook in self.called:
            hook(self, (given,), made)
        return made


class Store:
    """What waits for backward_dw."""

    def __init__(self):
        self.waiting = 0

    def pop(self):
        if self.waiting == 0:
            raise RuntimeError("Pop empty queue. No wgrad is waiting.")
        self.waiting -= 1


def layer_class():
    """One of its own for each capture, since graph.py replaces its __call__ and does not put it back if it fails."""
    return type("Layer", (Layer,), {})


class Layer(Module):
    def __init__(self, kind, delays):
        super().__init__()
        self.kind, self.delays, self.store = kind, delays, Store()

    def forward(self, given):
        return Tensor(given.shape, made_by=(self, given))

    def keep(self):
        self.store.waiting += self.delays

    def need_backward_dw(self):
        return self.delays

    def backward_dw(self):
        if self.kind != "grouped_linear" or self.store.waiting:  # which says nothing where nothing waits
            self.store.pop()


def flattened(tree):
    return (list(tree), None) if isinstance(tree, (list, tuple)) else ([tree], None)


@contextlib.contextmanager
def nothing(*_, **__):
    yield


def torch():
    cuda = types.SimpleNamespace(
        CUDAGraph=Graph, graph=capture, Stream=nothing, stream=nothing, synchronize=lambda: None, current_stream=lambda: None,
        get_rng_state=lambda: None, set_rng_state=lambda _: None)
    autograd = types.SimpleNamespace(
        backward=backward, Function=object, function=types.SimpleNamespace(once_differentiable=lambda method: method))
    return types.SimpleNamespace(
        Tensor=Tensor, nn=types.SimpleNamespace(Module=Module), cuda=cuda, autograd=autograd, is_autocast_enabled=lambda: False,
        empty_like=lambda tensor: Tensor(tensor.shape), dtype=object)


def members():
    """What stands behind graph.py's imports."""
    states = types.SimpleNamespace(is_fp8_enabled=lambda: False, is_first_fp8_module=lambda: False)
    return {"torch": torch(), "tree_flatten": flattened, "tree_unflatten": lambda leaves, _: leaves, "TransformerEngineBaseModule": Module,
            "FP8GlobalStateManager": states, "autocast": nothing, "get_all_rng_states": dict, "graph_safe_rng_available": lambda: False,
            "make_weak_ref": lambda tensors: tensors}
