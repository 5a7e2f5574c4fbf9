// SPDX-License-Identifier: Apache-2.0
export { LogsView, type ViewProps } from "./view";
export { SearchView } from "./search_view";
