"""aws, Debian's and a current one, over HTTP and TLS: trees both ways, parts, copies, listings, links, removal."""
import sys

import clients
from clients import gs

MAKERS = {
    "debian": lambda: ([clients.debian("aws")], {"PYTHONPATH": ""}),
    "current": lambda: ([sys.executable, clients.python_packages("current") / "bin/aws"],
                        {"PYTHONPATH": str(clients.python_packages("current"))}),
}


def goes_both_ways(server, maker, url, tree):
    program, env = MAKERS[maker]()
    bucket, what = f"{maker}-{url.split(':')[0]}", f"{maker} aws, {url.split(':')[0]}"
    s3 = f"s3://{bucket}"

    def aws(*arguments):
        return clients.run(f"{what}: {' '.join(map(str, arguments[:2]))}",
                           [*program, "--endpoint-url", url, "--no-verify-ssl", *arguments], clients.aws_environment(**env))

    aws("s3", "mb", s3)
    aws("s3", "sync", "--only-show-errors", tree, f"{s3}/tree")
    down = clients.new_directory("down")
    aws("s3", "sync", "--only-show-errors", f"{s3}/tree", down)
    clients.check_same(what, tree, down)
    if not gs.FULL:
        return
    again = aws("s3", "sync", "--no-progress", tree, f"{s3}/tree")
    gs.check_eq(f"{what}: nothing is sent twice", again.stdout, "")
    listed = aws("s3", "ls", "--recursive", s3).stdout.splitlines()
    gs.check_eq(f"{what}: all are listed", len(listed), clients.TREE_FILES)
    aws("s3", "cp", "--only-show-errors", f"{s3}/tree/size-{(8 << 20) + 1}", f"{s3}/copied")
    head = aws("s3api", "head-object", "--bucket", bucket, "--key", "copied", "--query", "ContentLength")
    gs.check_eq(f"{what}: the copy's length", head.stdout.strip(), str((8 << 20) + 1))
    clients.big_files(what, lambda file, key: aws("s3", "cp", "--only-show-errors", file, f"{s3}/{key}"),
                      lambda key, file: aws("s3", "cp", "--only-show-errors", f"{s3}/{key}", file))
    aws("s3", "rm", "--only-show-errors", "--recursive", s3)
    gs.check_eq(f"{what}: nothing is left", aws("s3", "ls", "--recursive", s3).stdout, "")
    aws("s3", "rb", s3)


def debian_and_current(server):
    tree = clients.make_tree("tree")
    goes_both_ways(server, "debian", server.url, tree)
    goes_both_ways(server, "current", server.tls_url, tree)
    if gs.FULL:
        goes_both_ways(server, "debian", server.tls_url, tree)
        goes_both_ways(server, "current", server.url, tree)


clients.main(debian_and_current)
