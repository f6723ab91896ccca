"""awscrt, the client below several others: parts and ranges of 8 MiB, with and without checksums, over HTTP and TLS."""
import clients
from clients import gs


def parts_and_ranges(server):
    files = clients.make_files("files", clients.SIZES + clients.BIG_SIZES)
    for url in (server.url, server.tls_url) if gs.FULL else (server.url,):
        scheme = url.split(":")[0]
        clients.run_program(f"awscrt, {scheme}", "awscrt_client.py", url, files, clients.new_directory("down"), f"crt-{scheme}")


clients.main(parts_and_ranges)
