import os

from generated import AuthenticatedClient
from generated.api.executions import get_execution
from generated.api.sandbox import run_program
from generated.models import ExecuteRequest

with AuthenticatedClient(base_url=os.environ["ATOLL_URL"], token=os.environ["ATOLL_API_KEY"]) as client:
    ran = run_program.sync(client=client, body=ExecuteRequest(code="print(6 * 7)"))
    none = get_execution.sync("trc_none", client=client)
if not hasattr(ran, "stdout"):
    raise SystemExit(f"the execution was refused: {ran}")
print(ran.stdout.strip(), none.error)
