// The elements that the patterns show, as those they are named after: a sign that something runs, and a line to type.
import type { JSX } from "preact";

/** What is typed in a common-input. */
export interface Command extends Event {
  command: string;
}

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "ct-loader": JSX.HTMLAttributes<HTMLElement>;
      "common-input": Omit<JSX.HTMLAttributes<HTMLElement>, "onsubmit"> & { placeholder?: string; onsubmit?: (e: Command) => void };
    }
  }
}

customElements.define(
  "ct-loader",
  class extends HTMLElement {
    connectedCallback() {
      this.textContent = "…";
    }
  },
);

customElements.define(
  "common-input",
  class extends HTMLElement {
    connectedCallback() {
      const line = document.createElement("input");
      line.placeholder = this.getAttribute("placeholder") ?? "";
      line.onkeydown = (e) => {
        if (e.key !== "Enter" || !line.value) return;
        this.dispatchEvent(Object.assign(new Event("submit"), { command: line.value }));
        line.value = "";
      };
      this.replaceChildren(line);
    }
  },
);
