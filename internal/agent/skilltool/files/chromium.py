"""What the programs here have in common, and how a browser of the sandbox is found and prepared."""

import base64
import hashlib
import json
import os
import shutil
import sys

DIRECT = ["/usr/lib/chromium/chromium"]  # what Debian's launcher runs, whose own settings are for desktops
NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"]
EXTRAS = "ask the operator to run 'atoll image build --with {0}' and then 'atoll env set TENANT ENVIRONMENT --image default+{0}'"
LACKING = "the environment has no browser. Tell the user to add chromium to packages.apt of the environment, or to " + EXTRAS.format("browser")
FLAGS = """--headless=new --no-sandbox --no-zygote --in-process-gpu --disable-gpu --disable-dev-shm-usage
--window-size=1280,800 --hide-scrollbars --mute-audio --no-first-run --no-default-browser-check
--disable-background-networking --disable-component-update --disable-default-apps --disable-domain-reliability
--disable-extensions --disable-sync --disable-quic --disable-breakpad --disable-crash-reporter --metrics-recording-only
--password-store=basic --use-mock-keychain --disk-cache-size=16777216 --renderer-process-limit=1
--disable-site-isolation-trials
--disable-features=IsolateOrigins,site-per-process,Translate,OptimizationHints,MediaRouter,PreloadTopChromeWebUI,NetworkTimeServiceQuerying
--gaia-url=http://127.0.0.1:1 --apps-gallery-update-url=http://127.0.0.1:1 --component-updater=url-source=http://127.0.0.1:1""".split()  # it asks no host by itself


class Refused(Exception):
    lacks = ()  # extras of the default image that would help


class Lacking(Refused):
    def __init__(self, text, lacks):
        super().__init__(text)
        self.lacks = lacks


def say(text, failed=False, lacks=()):
    """Answers a call as package filetool has it: the text follows as it is, so that what covers secrets finds them."""
    sys.stdout.buffer.write(json.dumps({"failed": failed, "lacks": list(lacks)}).encode() + b"\n" + text.encode(errors="surrogatepass"))
    sys.stdout.buffer.flush()


def binary(lacking=LACKING, lacks=("browser",)):
    for path in DIRECT:
        if os.access(path, os.X_OK):
            return path
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise Lacking(lacking, lacks)


def prepare(folder):
    """Makes a profile that trusts what programs of the sandbox trust, names hosts in clear and has the system look them up."""
    os.makedirs(f"{folder}/Default")
    with open(f"{folder}/Local State", "w") as f:
        json.dump({"ssl": {"ech_enabled": False}, "async_dns": {"enabled": False}}, f)
    with open(f"{folder}/Default/Preferences", "w") as f:  # it looks up no other name when one is not there, and none ahead
        json.dump({"alternate_error_pages": {"enabled": False}, "net": {"network_prediction_options": 2}, "search": {"suggest_enabled": False}}, f)
    try:
        import sqlite3  # which the smallest Python has not

        with open(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt") as f:
            bundle = f.read()
    except (ImportError, OSError):
        return
    known = {}
    for part in bundle.split("-----BEGIN CERTIFICATE-----")[1:]:
        der = base64.b64decode("".join(part.split("-----END")[0].split()))
        known[hashlib.sha256(der).hexdigest()] = der
    with sqlite3.connect(f"{folder}/Default/ServerCertificate") as db:
        db.execute("CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR)")
        db.execute("CREATE TABLE certificates(sha256hash_hex TEXT PRIMARY KEY,der_cert BLOB NOT NULL,trust_settings BLOB NOT NULL)")
        db.executemany("INSERT INTO meta VALUES(?,?)", [("version", "1"), ("last_compatible_version", "1")])
        trusted = bytes([10, 2, 8, 3])  # CertificateTrust, as the browser's settings would write it
        db.executemany("INSERT INTO certificates VALUES(?,?,?)", [(name, der, trusted) for name, der in known.items()])
    db.close()
