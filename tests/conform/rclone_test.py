"""rclone: a tree both ways, its own comparison of both sides, single files, removal."""
import clients
from clients import gs


def goes_both_ways(server):
    program = clients.debian("rclone")
    env = {"RCLONE_CONFIG": "/dev/null", "RCLONE_CONFIG_G_TYPE": "s3", "RCLONE_CONFIG_G_PROVIDER": "Other",
           "RCLONE_CONFIG_G_ENDPOINT": server.url, "RCLONE_CONFIG_G_ACCESS_KEY_ID": clients.KEY,
           "RCLONE_CONFIG_G_SECRET_ACCESS_KEY": clients.SECRET, "RCLONE_CONFIG_G_REGION": clients.REGION,
           "RCLONE_S3_UPLOAD_CUTOFF": "6M", "RCLONE_LOW_LEVEL_RETRIES": "1", "RCLONE_RETRIES": "1"}

    def rclone(*arguments):
        return clients.run(f"rclone {arguments[0]}", [program, *arguments], env)

    tree, down = clients.make_tree("tree"), clients.new_directory("down")
    rclone("sync", tree, "g:clone/tree")
    rclone("sync", "g:clone/tree", down)
    clients.check_same("rclone", tree, down)
    rclone("check", tree, "g:clone/tree")
    again = rclone("sync", "-v", tree, "g:clone/tree")
    gs.check("nothing is sent twice", "Copied" not in again.stderr, again.stderr[:200])
    gs.check_eq("all are listed", len(rclone("lsf", "-R", "--files-only", "g:clone").stdout.splitlines()), clients.TREE_FILES)
    clients.big_files("rclone", lambda file, key: rclone("copyto", file, f"g:clone/{key}"),
                      lambda key, file: rclone("copyto", f"g:clone/{key}", file))
    rclone("moveto", "g:clone/tree/size-1", "g:clone/moved")
    rclone("purge", "g:clone")
    gs.check_eq("nothing is left", rclone("lsf", "g:").stdout, "")


clients.main(goes_both_ways)
