#!/usr/bin/env python3
"""Records a trace of PyTorch's own pipeline runtime on one GPU, for `capo measure --trace` and `capo draw --against`.

    python3 bench/gpu/torch_trace.py OUT.json ORDER.csv

The runtime of ScheduleZBVZeroBubble, as of every class with several stages a rank, names each action by
record_function ("PP:0F0"), and that is what Kineto's trace holds. One rank has both stages, so nothing is sent;
ORDER.csv is the table that ran. Needs PyTorch 2.11 or later.
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import ScheduleZBVZeroBubble
from torch.profiler import ProfilerActivity, profile

MICROBATCHES, ROWS, WIDTH, LAYERS = 4, 4096, 4096, 2


def main(out, table):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    device = torch.device("cuda:0")
    torch.cuda.set_device(device)
    stages = []
    for number in range(2):
        chunk = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False, device=device, dtype=torch.bfloat16)
                                      for _ in range(LAYERS * (number + 1))))
        stages.append(PipelineStage(chunk, number, 2, device, group=dist.group.WORLD))
    loss = lambda output, target: (output.float() - target).square().mean()
    schedule = ScheduleZBVZeroBubble(stages, MICROBATCHES, loss_fn=loss)
    with open(table, "w") as file:
        for actions in schedule.pipeline_order.values():
            file.write(",".join("" if action is None else str(action) for action in actions) + "\n")
    x = torch.randn(MICROBATCHES * ROWS, WIDTH, device=device, dtype=torch.bfloat16)
    target = torch.randn(MICROBATCHES * ROWS, WIDTH, device=device)
    for _ in range(3):
        schedule.step(x, target=target)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        schedule.step(x, target=target)
        torch.cuda.synchronize()
    trace.export_chrome_trace(out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
