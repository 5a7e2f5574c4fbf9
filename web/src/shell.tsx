// SPDX-License-Identifier: Apache-2.0
// What frames each view: the name of the run, the views, how the connection is.
import type { ComponentChildren } from "preact";
import { model } from "./live";
import { href, logs_route, overview_route, route, type Route, type ViewName } from "./router";
import { is_dark, toggle_theme } from "./theme";
import { help_open } from "./help";

function Tab({ to, children }: { to: Route; children: ComponentChildren }) {
  const here: ViewName = route.value.view;
  return (
    <a href={href(to)} aria-current={here === to.view ? "page" : undefined}>
      {children}
    </a>
  );
}

export function Shell({ children }: { children: ComponentChildren }) {
  const { job } = model.value;
  return (
    <>
      <header class="top">
        <nav class="tabs" aria-label="Views">
          <Tab to={overview_route}>Overview</Tab>
          <Tab to={logs_route({ attempt: job?.attempt ?? 0, ranks: 0 })}>Logs</Tab>
          <Tab to={{ view: "search", params: new URLSearchParams() }}>Search</Tab>
        </nav>
        <button type="button" class="quiet" onClick={toggle_theme}>{is_dark.value ? "Light" : "Dark"}</button>
        <button type="button" class="quiet" aria-label="Keys" onClick={() => (help_open.value = true)}>?</button>
      </header>
      {children}
    </>
  );
}
