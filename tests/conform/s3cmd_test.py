"""s3cmd: a tree both ways, single files, listings, a copy, removal."""
import clients
from clients import gs


def goes_both_ways(server):
    configuration = gs.tmpdir() / "s3cfg"
    configuration.write_text(f"""[default]
access_key = {clients.KEY}
secret_key = {clients.SECRET}
host_base = 127.0.0.1:{server.port}
host_bucket = 127.0.0.1:{server.port}
use_https = False
progress_meter = False
""", encoding="utf-8")
    program = clients.debian("s3cmd")

    def s3cmd(*arguments):
        return clients.run(f"s3cmd {arguments[0]}", [program, "--config", configuration, *arguments], {"PYTHONPATH": ""})

    tree, down = clients.make_tree("tree"), clients.new_directory("down")
    s3cmd("mb", "s3://cmd")
    s3cmd("sync", f"{tree}/", "s3://cmd/tree/")
    s3cmd("sync", "s3://cmd/tree/", f"{down}/")
    clients.check_same("s3cmd", tree, down)
    again = s3cmd("sync", f"{tree}/", "s3://cmd/tree/")
    gs.check("nothing is sent twice", "upload:" not in again.stdout, again.stdout[:200])
    if not gs.FULL:
        return
    gs.check_eq("all are listed", len(s3cmd("ls", "--recursive", "s3://cmd").stdout.splitlines()), clients.TREE_FILES)
    s3cmd("cp", "s3://cmd/tree/size-1", "s3://cmd/copied")
    gs.check("what is known of the copy", "File size: 1\n" in s3cmd("info", "s3://cmd/copied").stdout)
    clients.big_files("s3cmd", lambda file, key: s3cmd("put", file, f"s3://cmd/{key}"),
                      lambda key, file: s3cmd("get", f"s3://cmd/{key}", file))
    s3cmd("del", "--recursive", "--force", "s3://cmd")
    gs.check_eq("nothing is left", s3cmd("ls", "--recursive", "s3://cmd").stdout, "")
    s3cmd("rb", "s3://cmd")


clients.main(goes_both_ways)
