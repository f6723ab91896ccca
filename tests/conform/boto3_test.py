"""boto3, an old and a current one, over HTTP and TLS."""
import clients
from clients import gs


def old_and_current(server):
    files = clients.make_files("files", clients.SIZES + clients.BIG_SIZES)
    some = clients.make_files("some")
    old = (("old", server.url), ("old", server.tls_url)) if gs.FULL else ()
    for packages, url in (("current", server.url), ("current", server.tls_url), *old):
        scheme = url.split(":")[0]
        given = files if (packages, scheme) in (("current", "https"), ("old", "http")) else some
        clients.run_program(f"{packages} boto3, {scheme}", "boto3_client.py", url, given, clients.new_directory("down"),
                            f"{packages}-{scheme}", packages=packages)


clients.main(old_and_current)
