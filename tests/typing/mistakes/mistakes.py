"""Mistakes that a type checker finds: it reports the lines that end in `# wrong`, and no others. Nobody runs this."""

import numpy as np
import numpy.typing as npt

import pullback as pb
from pullback import Tensor, nn

Parameters = dict[str, Tensor]
x = pb.ones((2, 3))


# -- names and arguments of functions -------------------------------------------------------------

pb.tahn(x)  # wrong
pb.tanh("x")  # wrong
pb.tanh()  # wrong
pb.add(x)  # wrong
pb.add(x, 1.0)
pb.add(x, np.ones(3))
pb.add(x, {"a": 1.0})  # wrong
pb.add(x, [1.0, 2.0])  # wrong
pb.sum([1.0, 2.0])
pb.sum({"a": 1.0})  # wrong
pb.sum(x, axis=0, keepdims=True)
pb.sum(x, axis=0, keepdim=True)  # wrong
pb.softmax(x, axis=1) + "1"  # wrong
pb.reshape(x, (3, 2)).shpae  # wrong
pb.mse_loss(x)  # wrong
pb.mse_loss(x, "y")  # wrong
pb.tensor([1.0], requires_gard=True)  # wrong
pb.ones((2, 3), dtyp=pb.float64)  # wrong
pb.linalg.inverse(x)  # wrong
pb.linalg.inv(None)  # wrong
pb.fft.fft(x, norm=1)  # wrong
pb.cross_entropy(x, np.array([0, 1]), label_smoothing="a little")  # wrong
pb.scaled_dot_product_attention(x, x, x, causal=True)  # wrong


# -- tensors --------------------------------------------------------------------------------------

x.summ()  # wrong
x.sum(dim=0)  # wrong
x.item().shape  # wrong
x.add("y")  # wrong
pb.exp(x.grad)  # wrong
x * {"a": 1.0}  # wrong
x @ None  # wrong
x > "y"  # wrong
x + [1.0, 2.0, 3.0]
2 - x + np.ones(3) * x
changed = x.clone()
changed += "y"  # wrong
x.shape = (3, 2)  # wrong
x.requires_grad = "yes"  # wrong
x.grad.sum()  # wrong
name: str = x.item()  # wrong
count: int = x[0]  # wrong
half: Tensor = x / 2
rows: list[Tensor] = list(x)
pair: tuple[int, int] = x.tanh()  # wrong
with pb.no_grad:  # wrong
    pass


# -- modules --------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        self.linear = nn.Linear(width, 2)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return scale * self.linear(x)


net = Net(3)
net(x, scale=2.0).sum()
net()  # wrong
net("x")  # wrong
net(x, sclae=2.0)  # wrong
net(x, 1.0, 2.0)  # wrong
net(x).summ()  # wrong
net.liner  # wrong
number: int = net(x)  # wrong
net.linear(x, x)  # wrong
net.linear.weight.mean()
net.load_state_dict([x])  # wrong
net.to_device(0)  # wrong
nn.Linear(3)  # wrong
nn.Linear("3", 2)  # wrong
nn.Linear(3, 2, biased=False)  # wrong
nn.Sequential(net, nn.ReLU())(x).summ()  # wrong
nn.Conv2d(1, 4, kernel=3)  # wrong


# -- compiled functions -----------------------------------------------------------------------------


@pb.compile
def step(x: Tensor, rate: float = 0.1) -> Tensor:
    return rate * x


@pb.compile(max_traces=4)
def other(x: Tensor) -> tuple[Tensor, Tensor]:
    return x, x


class Learner:
    @pb.compile
    def step(self, x: Tensor) -> Tensor:
        return x


step(x, rate=0.2).sum()
step(x).summ()  # wrong
step()  # wrong
step(x, "fast")  # wrong
step(x, rat=0.2)  # wrong
step(x, 0.1, 0.2)  # wrong
step.soruce  # wrong
a, b, c = other(x)  # wrong
other("x")  # wrong
Learner().step(x)
Learner().step(x, x)  # wrong
pb.compile(net)(x).sum()
pb.compile(net).num_parameters()
pb.compile(net)(x, scale="2")  # wrong
pb.compile(3)  # wrong
pb.compile(step, max_trace=3)  # wrong


# -- transforms -------------------------------------------------------------------------------------


def loss(parameters: Parameters, x: Tensor) -> Tensor:
    return (parameters["w"] * x).sum()


def energy(x: npt.NDArray[np.float64]) -> float:
    return float(np.sum(x**2))


parameters = {"w": x}
pb.grad(loss)(parameters, x)["w"].sum()
pb.grad(loss)([x], x)  # wrong
pb.grad(loss)(parameters)  # wrong
pb.grad(loss)(parameters, "x")  # wrong
pb.grad(loss)(parameters, x)["w"].summ()  # wrong
pb.grad(loss)(parameters, y=x)  # wrong
pb.grad(loss, argnum=1)  # wrong
pb.grad(loss, argnums="x")  # wrong
pb.grad(loss(parameters, x))  # wrong
value, (gradient, more) = 1.0, pb.value_and_grad(loss)(parameters, x)
gradient.summ()  # wrong
pb.value_and_grad(loss)(x, x)  # wrong
pb.hessian(energy)(np.ones(2)).shape
pb.hessian(energy)("x")  # wrong
pb.jacrev(energy)(np.ones(2), 1)  # wrong
pb.vmap(loss, in_axes=(None, 0))(parameters, x).sum()
pb.vmap(loss, in_axis=0)  # wrong
pb.vmap(loss)(parameters, x, x)  # wrong
pb.vmap(pb.grad(loss))(x, x)  # wrong
pb.compile(pb.grad(loss))(x, x)  # wrong
pb.stop_gradient(x).summ()  # wrong
pb.scan(lambda carry, x: carry, x, length="3")  # wrong
pb.cond(x.sum() > 0, lambda: x, lambda: -x).summ()  # wrong
pb.custom_op(lambda x: x, nmae="f", x=lambda g: g, y=3)  # wrong
pb.custom_op(lambda x: x, x=lambda g: g)(x).summ()  # wrong


@pb.checkpoint
def block(x: Tensor) -> Tensor:
    return x


@pb.no_grad()
def evaluate(x: Tensor) -> Tensor:
    return x


block("x")  # wrong
evaluate(x, x)  # wrong


# -- training ---------------------------------------------------------------------------------------

optimizer = pb.optim.AdamW(net.parameters(), lr=1e-3)
pb.optim.AdamW(net.parameters(), lr="1e-3")  # wrong
pb.optim.AdamW(net.parameters(), learning_rate=1e-3)  # wrong
pb.optim.AdamW(net)  # wrong
pb.optim.AdmaW(net.parameters())  # wrong
optimizer.stpe()  # wrong
optimizer.step(3)  # wrong
grads = pb.backward(net(x).sum())
grads[x].summ()  # wrong
grads.get(x).sum()  # wrong
grads["w"]  # wrong
grads.clip_global_norm("1")  # wrong
pb.backward(3.0)  # wrong
batches = pb.data.Batches((np.ones(3), np.ones(3)), batch_size=2)
pb.data.Batches(np.ones(3), batch_size="2")  # wrong
pb.data.Batches(np.ones(3), batchsize=2)  # wrong
trainer = pb.train.Trainer(net, pb.mse_loss, optimizer)
pb.train.Trainer(net, "mse", optimizer)  # wrong
pb.train.Trainer(net, pb.mse_loss, optimizer, clip=1.0)  # wrong
trainer.fit(batches, epoch=3)  # wrong
trainer.fit(batches, epochs="3")  # wrong
trainer.history.lossess  # wrong
trainer.evaluate(batches).loss  # wrong
pb.optim.schedules.Cosine(steps=3)  # wrong
pb.save(net, "net.safetensors")  # wrong
pb.random.normal((2, 3), deviation=1.0)  # wrong
pb.random.uniform((2, 3)).summ()  # wrong
