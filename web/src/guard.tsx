// SPDX-License-Identifier: Apache-2.0
import { Component, type ComponentChildren } from "preact";

interface Props {
  name: string;
  children: ComponentChildren;
}

// A part of the page that cannot be drawn takes no other part with it, and says so.
export class Guard extends Component<Props, { error: string }> {
  override state = { error: "" };

  override componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ error: error instanceof Error ? error.message : String(error) });
  }

  override render({ name, children }: Props, { error }: { error: string }) {
    if (!error) return <>{children}</>;
    return (
      <section class="card" role="alert">
        <p>
          <strong>{name} cannot be shown:</strong> <span class="foreign">{error}</span>{" "}
          <span class="muted">This is a fault of muster's page; the same is told by</span>{" "}
          <a href="/status">/status</a>.
        </p>
        <p class="actions">
          <button type="button" onClick={() => this.setState({ error: "" })}>
            Try again
          </button>
        </p>
      </section>
    );
  }
}
