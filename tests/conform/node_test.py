"""The JavaScript clients: @aws-sdk with lib-storage and its presigner, and minio, over HTTP and TLS."""
import shutil

import clients
from clients import gs


def sdk_and_minio(server):
    node = shutil.which("node")
    if not gs.check("node is there", node, "apt-get install nodejs"):
        return
    files = clients.make_files("files", clients.SIZES + clients.BIG_SIZES)
    for url in (server.url, server.tls_url) if gs.FULL else (server.url,):
        scheme = url.split(":")[0]
        env = clients.aws_environment(NODE_PACKAGES=str(clients.node_modules()), NODE_TLS_REJECT_UNAUTHORIZED="0", NODE_NO_WARNINGS="1")
        for name in ("sdk", "minio"):
            what = f"{name}, {scheme}"
            done = clients.run(f"{what} ends", [node, clients.HERE / f"programs/{name}_client.mjs", url, files,
                                                clients.new_directory("down"), f"{name}-{scheme}"], env)
            clients.take_checks(what, done.stdout)


clients.main(sdk_and_minio)
