// Does what platform.ts has in a worker.
import { use, type Place } from "./platform.js";

const scope = globalThis as unknown as { onmessage: (e: MessageEvent<Place>) => void; postMessage(answer: unknown): void };
scope.onmessage = (e) =>
  void use(e.data).then(
    (answer) => scope.postMessage(answer),
    (error: unknown) => scope.postMessage(String(error)),
  );
