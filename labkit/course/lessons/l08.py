"""Lesson 08, many machines: its exercises, with tasks and hints; what is said about mistakes stands in l08_why,
l08_why_script and l08_why_resume."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l08_cases as cases
from labkit.course.lessons import l08_record as record
from labkit.course.lessons import l08_why as why
from labkit.course.lessons import l08_why_resume as why_resume
from labkit.course.lessons import l08_why_script as why_script
from labkit.course.lessons import l08_wrong as wrong
from labkit.course.lessons import l08_wrong_training as wrong_training
from labkit.course.recorded import RecordedCheck
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="08.torchrun",
        title="A script that torchrun can start",
        function="train",
        kind="core",
        minutes=25,
        task=(
            "Make train(data, epochs, path) ready for torchrun: every rank trains on its share of each epoch, all "
            "end with the same model, rank 0 alone prints and saves, and nothing about the cluster is written in the "
            "script."
        ),
        hints=(
            "torchrun starts the same script on every rank and tells it who it is: os.environ holds RANK, LOCAL_RANK, "
            "WORLD_SIZE, MASTER_ADDR and MASTER_PORT. dist.init_process_group('gloo') reads what it needs.",
            "sampler = DistributedSampler(data) goes to the DataLoader in place of shuffle=True; "
            "sampler.set_epoch(epoch) at the start of every epoch. After backward, average each gradient: "
            "dist.all_reduce(p.grad), then p.grad /= world.",
            "The device is torch.device('cuda', local_rank) where there is CUDA. Print and torch.save under "
            "if rank == 0, and end with dist.destroy_process_group().",
        ),
        praise="It runs on one rank and on two nodes with two ranks each, and would on a hundred.",
        plan=RecordedCheck(
            ("data", "epochs", "path"), cases.launches, why_script.launch, record.launch, loads=("torch",)
        ),
        wrong=wrong_training.TORCHRUN,
    ),
    Exercise(
        name="08.crossover",
        title="Eager or rendezvous?",
        function="crossover",
        kind="core",
        minutes=15,
        task=(
            "Write crossover(sizes, eager_s, rendezvous_s): the size in bytes from which rendezvous is faster, where "
            "the two fitted lines alpha + n / beta meet (least squares of relative errors, as in 03.alpha_beta). "
            "Return 0.0 where rendezvous always is, math.inf where it never is."
        ),
        hints=(
            "Fit each protocol as in lesson 03: np.linalg.lstsq(np.column_stack([1 / t, n / t]), np.ones(len(t)), "
            "rcond=None) gives the start-up and the seconds a byte.",
            "The lines meet where the extra start-up of rendezvous equals the extra seconds of eager: a_r + s_r * n = "
            "a_e + s_e * n.",
            "n = (a_r - a_e) / (s_e - s_r). When s_r >= s_e rendezvous never catches up; when n comes out below 0 it "
            "is ahead from the start.",
        ),
        praise="Right for every table, yours included: a start-up on one side, a copy a byte on the other.",
        plan=FunctionCheck(("sizes", "eager_s", "rendezvous_s"), cases.crossover, why.crossover),
        wrong=wrong.CROSSOVER,
        table=cases.message_table,
    ),
    Exercise(
        name="08.hierarchical",
        title="All-reduce in two levels",
        function="hierarchical",
        kind="core",
        minutes=20,
        task=(
            "Write hierarchical(data, rank, nodes, per_node): an all-reduce (sum, in place) in which every rank sends "
            "over the slow link between nodes no more than 2 (m - 1) / m of its own 1 / per_node of the data, m being "
            "the number of nodes. Ranks of one node are neighbours: node 0 has ranks 0 to per_node - 1."
        ),
        hints=(
            "Three phases: reduce-scatter inside the node, all-reduce of one chunk across nodes, all-gather inside the "
            "node. labkit.network has ring_reduce_scatter, ring_all_reduce and ring_all_gather, each with members=.",
            "inside = range(first, first + per_node) with first = rank - rank % per_node, and across = range(rank % "
            "per_node, nodes * per_node, per_node): the ranks with the same place in their nodes.",
            "mine = ring_reduce_scatter(data, members=inside) is the slice of data that this rank now holds complete; "
            "ring_all_reduce(data[mine], members=across); ring_all_gather(data, members=inside).",
        ),
        praise="The sums are right, and what crosses the slow link is the least there can be, from all ranks alike.",
        plan=RecordedCheck(
            ("data", "rank", "nodes", "per_node"), cases.hierarchies, why.hierarchical, record.hierarchical
        ),
        wrong=wrong.HIERARCHICAL,
    ),
    Exercise(
        name="08.resume",
        title="Killed, and on from there",
        function="resumable",
        kind="core",
        minutes=25,
        task=(
            "Write resumable(job, path): train to the end, from the checkpoint where there is one, so that kills at "
            "any moment change neither the samples that the model has seen, nor their order, nor the loss; the next "
            "life may have more or fewer ranks. Return the model."
        ),
        hints=(
            "Number the steps through all epochs: epoch, place = divmod(step, job.steps_per_epoch). Then one number "
            "says where the training is, whatever the number of ranks.",
            "The checkpoint holds all that the next step depends on: the step, the model and the optimizer. Rank 0 "
            "writes it, after every job.every steps; every rank loads it.",
            "job.save(state, path + '.new'), then os.replace(path + '.new', path): a kill while saving leaves the old "
            "checkpoint whole. (Import os inside your function.)",
        ),
        praise="Killed between steps and while saving, with one to four ranks: the same samples and the same loss.",
        plan=RecordedCheck(("job", "path"), cases.interruptions, why_resume.resume, record.resume),
        wrong=wrong_training.RESUME,
    ),
    Exercise(
        name="08.claim",
        title="Less than 100 ns?",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'InfiniBand has a latency of less than 100 ns.' Fill the dictionary claim: verdict "
            "(true, mostly true, misleading, false or unsourced), number and unit (what a small RDMA write takes from "
            "one machine to another through a fabric), left_out."
        ),
        hints=(
            "labkit.hardware.latency('edr-switch') and latency('rdma-write-fabric') say what takes how long, with "
            "sources.",
            "A message passes a network card, cables, one or more switches, and another card; 90 ns is one of these.",
            "An RDMA write through a fabric takes 1.4 to 1.9 us.",
        ),
        praise="Yes: 90 ns is one switch, and a message passes more than that.",
        plan=DataCheck(why.claim, claim_begun),
        wrong=wrong.CLAIM,
    ),
    Exercise(
        name="08.goodput",
        title="How often to save",
        function="interval",
        kind="stretch",
        minutes=15,
        task=(
            "Write interval(nodes, node_mtbf_s, checkpoint_s, restart_s): seconds of work between two checkpoints, so "
            "that the job ends, under seeded failures, within 1.1 times the least possible time."
        ),
        hints=(
            "With a checkpoint every t seconds of work, writing costs checkpoint_s / t of the time. What does a "
            "failure cost on average, and how often does one come?",
            "A failure throws away half an interval: t / 2 every M seconds, where M is node_mtbf_s / nodes. Add both "
            "costs and find the t where their sum is least.",
            "d / t + t / (2 M) is least at t = sqrt(2 * d * M).",
        ),
        praise="Within a tenth of the best, for every job: the root of twice the checkpoint times the MTBF of the job.",
        plan=FunctionCheck(
            ("nodes", "node_mtbf_s", "checkpoint_s", "restart_s"), cases.failures, why.goodput
        ),
        wrong=wrong.GOODPUT,
        table=cases.failure_table,
    ),
)
