// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { Guard } from "./guard";
import { Help, help_open } from "./help";
import { register_keys } from "./keyboard";
import { LogsView, SearchView } from "./logs";
import { Overview } from "./overview/overview";
import { logs_route, navigate, overview_route, route, type Navigation } from "./router";
import { model } from "./live";
import { Shell } from "./shell";
import { toggle_theme } from "./theme";

function open_logs(): void {
  const job = model.peek().job;
  navigate(logs_route({ attempt: job?.attempt ?? 0, ranks: 0 }));
}

// Before the first rendering, so that a view may take a key for itself.
export function register_page_keys(): void {
  register_keys({
    title: "Page",
    bindings: [
      { keys: "g o", label: "overview", run: () => navigate(overview_route) },
      { keys: "g l", label: "logs", run: open_logs },
      {
        keys: "g s",
        label: "search",
        run: () => navigate({ view: "search", params: new URLSearchParams() }),
      },
      { keys: "g t", label: "light or dark", run: toggle_theme },
      { keys: "?", label: "this help", run: () => (help_open.value = !help_open.peek()) },
    ],
  });
}

export function App() {
  const { view, params } = route.value;
  const setParams = useMemo(
    () => (next: URLSearchParams, how?: Navigation) => navigate({ view, params: next }, how),
    [view],
  );
  return (
    <Shell>
      {view === "overview" && <Overview />}
      {view === "logs" && (
        <Guard name="The log">
          <LogsView params={params} setParams={setParams} />
        </Guard>
      )}
      {view === "search" && (
        <Guard name="The search">
          <SearchView params={params} setParams={setParams} />
        </Guard>
      )}
      <Help />
    </Shell>
  );
}
