"""An origin that does on its connections exactly what a test says, byte by byte; for tests of a gyre that stands in front of it.

    origin = RawOrigin()
    origin.on("/cut", lambda conn, request: conn.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 9\\r\\n\\r\\nabc"))

A script gets the connection and the request's head; it reads the body itself. Unless it returns True the connection ends behind it.
"""
import socket
import struct
import threading


class Closed(Exception):
    """The other side has ended the connection."""


class Request:
    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = lines[0].split(" ", 2)
        pairs = [line.partition(":") for line in lines[1:] if line]
        self.fields = {name.lower(): value.strip() for name, _, value in pairs}
        self.head = head


class Connection:
    def __init__(self, sock):
        self.sock, self.held = sock, b""

    def _more(self):
        try:
            got = self.sock.recv(1 << 18)
        except OSError as error:
            raise Closed from error
        if not got:
            raise Closed
        self.held += got

    def until(self, end):
        while end not in self.held:
            self._more()
        found, _, self.held = self.held.partition(end)
        return found

    def read(self, n):
        while len(self.held) < n:
            self._more()
        found, self.held = self.held[:n], self.held[n:]
        return found

    def body(self, request):
        """The request's whole body; Closed if it is cut short."""
        if request.fields.get("transfer-encoding") != "chunked":
            return self.read(int(request.fields.get("content-length", 0)))
        body = b""
        while size := int(self.until(b"\r\n"), 16):
            body += self.read(size)
            self.read(2)
        self.until(b"\r\n")
        return body

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Closed from error

    def reset(self):
        """Ends the connection by RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        raise Closed

    def wait_end(self):
        """Until the other side ends the connection; what it sent meanwhile is dropped."""
        while True:
            self.held = b""
            self._more()


class RawOrigin:
    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.scripts, self.seen, self.lock, self.n_connections = {}, {}, threading.Lock(), 0
        threading.Thread(target=self._accept, daemon=True).start()

    def on(self, path, script):
        self.scripts[path] = script

    def requests(self, target):
        """What has been asked for `target` so far."""
        with self.lock:
            return list(self.seen.get(target, []))

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self._serve, args=(Connection(sock),), daemon=True).start()

    def _serve(self, conn):
        try:
            goes_on = True
            while goes_on:
                request = Request(conn.until(b"\r\n\r\n"))
                with self.lock:
                    self.seen.setdefault(request.target, []).append(request)
                goes_on = self.scripts.get(request.target.partition("?")[0], not_found)(conn, request)
        except Closed:
            pass
        conn.sock.close()


def not_found(conn, _request):
    conn.send(response(status="404 Not Found"))
    return True


def response(body=b"", status="200 OK", length=None, **fields):
    """The bytes of a response; `length` instead of the body's own."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
