"""Lesson 09, topology: its exercises, with tasks and hints; what is said about mistakes stands in l09_why,
l09_why_loads and l09_simulated."""

from __future__ import annotations

from labkit.course.checks import DataCheck, FunctionCheck
from labkit.course.claims import claim_begun
from labkit.course.lessons import l09_cases as cases
from labkit.course.lessons import l09_simulated as simulated
from labkit.course.lessons import l09_why as why
from labkit.course.lessons import l09_why_loads as loads
from labkit.course.lessons import l09_wrong as wrong
from labkit.course.lessons import l09_wrong_simulated as wrong_simulated
from labkit.course.registry import Exercise

EXERCISES = (
    Exercise(
        name="09.route",
        title="The way through a torus",
        function="route",
        kind="core",
        minutes=15,
        task=(
            "Write route(dims, source, target): every GPU on the way, source and target included, as a list of "
            "coordinates. Dimension 0 is settled first, then 1, and so on; each the shorter way round the torus, "
            "upwards where both are equally long."
        ),
        hints=(
            "In one dimension of n places, (target - source) % n says how many hops it is upwards, round the end if "
            "need be.",
            "If twice that number is at most n, go up; else go down. Take each new coordinate modulo n.",
            "Keep the place in a list; for each dimension, while it differs from the target: change that coordinate by "
            "the step, and append tuple(place).",
        ),
        praise="Right in one dimension and in four, round every corner.",
        plan=FunctionCheck(("dims", "source", "target"), cases.route, why.route),
        wrong=wrong.ROUTE,
    ),
    Exercise(
        name="09.hot_link",
        title="Find the hot link",
        function="hot_link",
        kind="core",
        minutes=10,
        task=(
            "Write hot_link(links, flows): links gives the bytes a second of each link (a cable is two links, one each "
            "way), flows lists (bytes, [names of the links it crosses]). Return the name of the link that needs the "
            "longest for what crosses it, the bytes it carries, and the seconds that takes."
        ),
        hints=(
            "Add up bytes for each link: a dictionary from name to bytes, filled by two nested loops.",
            "Most bytes is not hottest: seconds are bytes over the rate of that very link.",
            "seconds = {name: total[name] / links[name] for name in links}; then max(seconds, key=seconds.get).",
        ),
        praise="That link decides: nothing on this network can be done sooner than it is.",
        plan=FunctionCheck(("links", "flows"), cases.hot_link, loads.hot_link),
        wrong=wrong.HOT_LINK,
        table=cases.hot_link_table,
    ),
    Exercise(
        name="09.leaf",
        title="How much oversubscription is too much?",
        function="leaf",
        kind="core",
        minutes=15,
        task=(
            "Write leaf(ports, uplinks, host_Gbps, uplink_Gbps, gigabytes, seconds): the most hosts a leaf switch can "
            "have if each, all at once, sends so many gigabytes to other racks within so many seconds, and the "
            "oversubscription then. Uplinks take ports too, and share the traffic evenly."
        ),
        hints=(
            "Rates are in Gbit/s each way, traffic in GB: one byte is 8 bits. How many GB can all uplinks carry in the "
            "time?",
            "The hosts are bounded by that (rounded down), and by the ports that are left. And what if one host's own "
            "link is too slow? Then 0 hosts, and an oversubscription of 0.",
            "The oversubscription is hosts * host_Gbps over uplinks * uplink_Gbps: above 1 the hosts could send more "
            "than the uplinks carry.",
        ),
        praise="Not 1:1 by habit, but as much as the traffic needs.",
        plan=FunctionCheck(cases.LEAF, cases.leaf, loads.leaf),
        wrong=wrong.LEAF,
        table=cases.leaf_table,
    ),
    Exercise(
        name="09.place",
        title="Place ranks so that no link is hot",
        function="place",
        kind="core",
        minutes=25,
        task=(
            "Write place(groups, racks, hosts): each group lists the ranks of a ring all-reduce, in the order of the "
            "ring, all at once and of the same size. Return the host of every rank; host h is in rack h // hosts, and "
            "each rack has one uplink. Gate: no link carries more than the busiest host's own link has to."
        ),
        hints=(
            "A group in one rack costs the uplinks nothing. A group over two racks crosses each uplink once a "
            "direction, if its ring is cut into one piece a rack.",
            "Largest groups first: a small one finds a gap more easily than a large one.",
            "For each group, from the largest: the fullest rack that still has room for all of it; if none has, fill "
            "the emptiest rack with the first ranks of the ring, and go on with the rest of the ring.",
        ),
        praise="No uplink carries more than a single host sends.",
        plan=FunctionCheck(("groups", "racks", "hosts"), cases.place, loads.place),
        wrong=wrong.PLACE,
        table=cases.place_table,
    ),
    Exercise(
        name="09.claim",
        title="From 12 ms to 8 ms",
        function="claim",
        kind="claim",
        minutes=10,
        task=(
            "Judge the claim: 'Topology-aware aggregation in Horovod took all-reduce from 12 ms to 8 ms on eight "
            "nodes.' Fill the dictionary claim: verdict (true, mostly true, misleading, false or unsourced), number "
            "and unit (how many times faster the hierarchical all-reduce of 102.4 MB is than one flat ring, on eight "
            "DGX A100, simulated), left_out."
        ),
        hints=(
            "Who measured it, on which network, how many bytes, how many GPUs in a node, against what?",
            "net = labkit.fabric('dgx-a100', nodes=8) is the network to take; net.all_reduce('102.4MB', ...).seconds.",
            "Divide the seconds of 'ring' by those of 'hierarchical'.",
        ),
        praise="Yes: without a topology it is an anecdote; with one, anybody can recompute it.",
        plan=DataCheck(simulated.claim, claim_begun),
        wrong=wrong_simulated.CLAIM,
    ),
    Exercise(
        name="09.ring",
        title="A ring through a torus",
        function="ring",
        kind="stretch",
        minutes=15,
        task=(
            "Write ring(rows, columns): the GPUs (row, column) of a torus in the order of a ring in which each is next "
            "to the one before, and the last to the first. At least one of the two sides is even."
        ),
        hints=(
            "Go through the rows like a snake: one to the right, the next to the left.",
            "The torus has a cable from the last row to the first. When does the snake end below its start?",
            "With an even number of rows it does; with an odd one, let the snake run along the columns.",
        ),
        praise="Every message of the ring crosses one link, and no link carries two.",
        plan=FunctionCheck(("rows", "columns"), cases.ring, why.ring),
        wrong=wrong.RING,
    ),
    Exercise(
        name="09.at_scale",
        title="Which algorithm, at which size?",
        function="fastest",
        kind="stretch",
        minutes=20,
        task=(
            "Write fastest(server, nodes, size): simulate the all-reduce on labkit.fabric(server, nodes=nodes) by "
            "ring, double-tree, halving-doubling, hierarchical and in-switch, each in 1 and in 16 chunks, all with "
            "protocol='simple'. Return the algorithm, the chunks and the seconds of the fastest."
        ),
        hints=(
            "net = labkit.fabric(server, nodes=nodes), and then net.all_reduce(size, algorithm, chunks=chunks, "
            "protocol='simple').seconds for each of the ten ways.",
            "Where switches cannot add, in-switch raises labkit.LabkitError: try, except, and go on with the next.",
            "Collect (seconds, algorithm, chunks) of all ways in a list, and take its min.",
        ),
        praise="Each by simulation, and no algorithm is the best at everything.",
        plan=FunctionCheck(
            ("server", "nodes", "size"),
            simulated.at_scale,
            simulated.judge_scale,
            loads=("labkit.course.lessons.l09_ready",),
        ),
        wrong=wrong_simulated.AT_SCALE,
        table=simulated.jobs,
    ),
)
