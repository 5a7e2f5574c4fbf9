// SPDX-License-Identifier: Apache-2.0
// Where in the page we are, as its address says: "#/logs?attempt=0&ranks=3". The part after "#"
// never reaches the server, and every view is a link that can be sent to others.
import { signal } from "@preact/signals";

export type ViewName = "overview" | "logs" | "search";

export interface Route {
  view: ViewName;
  params: URLSearchParams;
}

export interface Navigation {
  replace?: boolean; // no step for the Back button
}

const kPaths: Record<ViewName, string> = { overview: "/", logs: "/logs", search: "/search" };

export function parse_hash(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const params = new URLSearchParams(at < 0 ? "" : text.slice(at + 1));
  const view = (Object.keys(kPaths) as ViewName[]).find((name) => kPaths[name] === path);
  return { view: view ?? "overview", params };
}

export function href(route: Route): string {
  const query = route.params.toString();
  return `#${kPaths[route.view]}${query ? `?${query}` : ""}`;
}

export interface LogsPlace {
  attempt: number;
  ranks: number | string; // 3, "0-7,9"
  streams?: string; // "stdout,stderr" by default
  offset?: number | "end";
}

export function logs_route(place: LogsPlace): Route {
  const params = new URLSearchParams({
    attempt: String(place.attempt),
    ranks: String(place.ranks),
  });
  if (place.streams) params.set("streams", place.streams);
  if (place.offset !== undefined) params.set("offset", String(place.offset));
  return { view: "logs", params };
}

export const overview_route: Route = { view: "overview", params: new URLSearchParams() };

export const route = signal<Route>(overview_route);

export function navigate(to: Route, how: Navigation = {}): void {
  const target = href(to);
  if (target === (location.hash || "#/")) return;
  if (how.replace) {
    history.replaceState(history.state, "", target);
  } else {
    history.pushState(null, "", target);
  }
  route.value = to;
}

export function start_router(): void {
  const read = () => {
    route.value = parse_hash(location.hash);
  };
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  read();
}
