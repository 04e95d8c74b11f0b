use windlass_sim::{api::Api, clock::Clock, journal::Journal};
#[tokio::test]
async fn serve() {
    let api = Api::new(Clock::start(), Journal::default());
    let l = tokio::net::TcpListener::bind("127.0.0.1:18080").await.unwrap();
    let _ = tokio::time::timeout(std::time::Duration::from_secs(40), api.serve(l)).await;
}
#[tokio::test(start_paused = true)]
async fn speed() {
    use serde_json::json;
    let t = std::time::Instant::now();
    for _ in 0..200 { let _ = Api::new(Clock::start(), Journal::default()); }
    eprintln!("Api::new {:?}", t.elapsed() / 200);
    let api = Api::new(Clock::start(), Journal::default());
    let pod = json!({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default","labels":{"a":"b"}},"spec":{"containers":[{"name":"m","image":"x:1"}],"nodeName":"n"}});
    api.create_value("t", pod).unwrap();
    let t = std::time::Instant::now();
    for i in 0..5000 { api.merge_status::<k8s_openapi::api::core::v1::Pod>("t","default","p",&json!({"status":{"podIP":format!("1.1.1.{i}")}})).unwrap(); }
    eprintln!("pod status merge {:?}", t.elapsed() / 5000);
    let t = std::time::Instant::now();
    for _ in 0..5000 { api.get::<k8s_openapi::api::core::v1::Pod>("default","p").unwrap(); }
    eprintln!("pod get {:?}", t.elapsed() / 5000);
    let t = std::time::Instant::now();
    for _ in 0..5000 { api.get_value("pods","default","p").unwrap(); }
    eprintln!("pod get value {:?}", t.elapsed() / 5000);
}
