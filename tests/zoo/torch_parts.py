"""What the files of torch's zoo share: modules whose outputs are tensors, norms with drawn statistics, inputs."""

import math
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.backends.mha.set_fastpath_enabled(False)  # one operator for a whole layer, which no exporter knows


def image(side, channels=3, width=None):
    return {"image": torch.randn(1, channels, side, width or side)}


def settled(net):
    """What is zero, one or next to nothing in a fresh net hides most of it: drawn as in a trained one."""
    with torch.no_grad():
        for part in net.modules():
            if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
                nn.init.uniform_(part.running_mean, -0.1, 0.1)
                nn.init.uniform_(part.running_var, 0.5, 1.5)
        for name, given in net.named_parameters():
            if given.is_floating_point() and given.numel() > 1:
                settle(name, given)
    return net


def settle(name, given):
    value, spread = float(given.flatten()[0]), float(given.std())
    reach = spread * math.sqrt(given[0].numel())
    if spread > 1e-6 * abs(value):
        if given.dim() > 1 and reach < 0.3:
            given.mul_(0.5 / reach)
    elif value > 0.1:
        given.mul_(torch.empty_like(given).uniform_(0.8, 1.2))
    elif given.dim() == 1 and (value or name.endswith("weight")):  # of a branch beside a residual path
        nn.init.uniform_(given, 0.2, 0.8)
    else:
        nn.init.normal_(given, std=0.02 if given.dim() == 1 else 0.05)


class Only(nn.Module):
    """A module whose outputs are tensors: what `pick` takes of them, all tensors below them by default. Its inputs go
    by `names`, where given, else by position."""

    def __init__(self, net, pick=None, names=None):
        super().__init__()
        self.net, self.pick, self.names = net, pick or tensors, names

    def forward(self, *inputs):
        return self.pick(self.net(**dict(zip(self.names, inputs))) if self.names else self.net(*inputs))


def tensors(found):
    """The tensors of nested outputs, in order; floats and integers, but not what is cached for a next step."""
    if isinstance(found, torch.Tensor):
        return (found,)
    if isinstance(found, dict):
        found = [value for key, value in found.items() if key not in ("past_key_values", "cache_params", "state")]
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(tensor for of in found for tensor in tensors(of))
